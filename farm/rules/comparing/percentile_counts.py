"""How many timings a percentile needs. Clients without numpy use it, so it is not in the module that computes them."""

# A percentile may be published from this many timings on. The counts are those of MLPerf's early stopping at 99 %
# confidence, which names none for p95: p95 has the count of p99.
MIN_TIMINGS = {"p50": 1, "p90": 64, "p95": 662, "p99": 662, "p99.9": 6636}
