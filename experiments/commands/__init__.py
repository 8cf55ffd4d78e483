"""The commands of `ginrummy`, by what they are about. experiments/cli.py lists and calls them."""
