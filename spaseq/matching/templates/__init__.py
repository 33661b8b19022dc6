"""Queries that differ only in constants, as one query over a table of parameters."""
