"""Doors to other people's training libraries. A module needs the library it is named after; none is imported here."""
