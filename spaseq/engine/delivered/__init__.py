"""Matches out: those that nobody has yet, and those that are looked for when somebody asks."""
