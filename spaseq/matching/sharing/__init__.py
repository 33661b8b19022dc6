"""Run queries with a common prefix as one automaton: they share partial matches up to where they differ.

``cohort`` finds queries that can share; open it first. ``group`` runs them, ``member`` is one of the queries.
"""
