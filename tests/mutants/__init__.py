"""Mutants: thirty small faults, and which of the test commands notice them. See ``__main__``."""
