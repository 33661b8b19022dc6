"""Queries that begin alike and have one bound: what is shed is shed for all of them."""
