"""A recording of a process: makes the parts, attaches to modules, begins and ends steps."""
