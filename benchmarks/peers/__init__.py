"""otel_asyncprof beside other profilers on the same programs: python -m peers, with benchmarks/ on PYTHONPATH."""
