"""Queries with a common prefix and one bound: a partial match is shed for all of them. Open ``together``
first.
"""
