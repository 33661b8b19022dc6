"""Matches as columns: blocks, their values, and the few matches made one by one. Open ``found`` first."""
