"""Examples of training with other people's libraries. Each is run by itself: python -m experiments.examples.NAME."""
