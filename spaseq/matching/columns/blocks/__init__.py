"""Matches as columns: blocks, what is asked of them, and the few that are made one by one."""
