"""Measure how a model is best computed on this machine, keep the answer, and use it at later starts."""
