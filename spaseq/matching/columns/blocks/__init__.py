"""Matches as columns: blocks, their values, and the few matches that are made one by one."""
