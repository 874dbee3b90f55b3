"""The demo: a web service with slow queries, and what its traces and profiles say together."""
