"""What is profiled, and what starts a profiler in it: all of this runs in the environment of the profiler."""
