"""For trainers of frameworks, in the way each of them expects: callbacks, a tracker.

None of them is needed under `traindbg run`, which listens to the frameworks by itself. A module
here needs its framework when it is imported; nothing else in traindbg does.
"""
