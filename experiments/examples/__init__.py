"""Short programs that show one thing each: ``python -m experiments.examples.NAME``."""
