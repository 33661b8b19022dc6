"""Queries that run as one: the group, and the seats that single queries have in it."""
