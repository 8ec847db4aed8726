"""The parts of benchmarks/python/diagnosis.py: what the gallery is, how it is run, counted, told.

Lower ones know nothing of higher ones: programs, outcomes, recording and journal, scores, bars,
report and results.
"""
