"""Runs interpreted event by event: the whole language, the eager NFA_scep in plain Python."""
