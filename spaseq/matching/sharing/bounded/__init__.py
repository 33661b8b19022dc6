"""Queries with a common prefix and one bound: shedding drops a partial match for all of them."""
