"""Losses of evaluations that compute none, of labels that are found."""
