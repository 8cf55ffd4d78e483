"""Experiments: matches between players, benchmarks, reports, and the `ginrummy` command."""
