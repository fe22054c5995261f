"""How many timings a percentile needs. It is apart from the code that computes them, for clients without numpy."""

# The counts from which a percentile may be published: those of MLPerf's early stopping at 99 % confidence. It names
# none for p95, which therefore waits for the count of p99.
COUNT_FOR = {"p50": 1, "p90": 64, "p95": 662, "p99": 662, "p99.9": 6636}
