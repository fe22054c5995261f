"""How many timings a percentile needs. Clients without numpy use it, so it is not in the module that computes them."""

# The counts from which a percentile may be published: those of MLPerf's early stopping at 99 % confidence. It names
# none for p95, for which the count of p99 is taken.
MIN_TIMINGS = {"p50": 1, "p90": 64, "p95": 662, "p99": 662, "p99.9": 6636}
