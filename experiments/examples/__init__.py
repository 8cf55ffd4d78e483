"""Short programs that train with other people's libraries; each is run as ``python -m experiments.examples.NAME``."""
