"""Queries at work: order and lateness, groups of queries that share it, and the flow from batch to match."""
