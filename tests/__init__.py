"""Tests. A plain `pytest` leaves out those marked slow."""
