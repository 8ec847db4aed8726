"""PyTorch: what `watch` and `traindbg run` share (`watching`), and the parts of a recording.

Each package is a topic; which may use which, layers.txt says.
"""
