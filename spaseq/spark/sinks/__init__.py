"""Answers out: files, folders, typed columns, and derived events."""
