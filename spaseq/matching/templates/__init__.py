"""Run queries that differ only in constants as one query over a table of parameters.

``form`` is the normal form of such queries (open it first), ``parameters`` is the table, and ``table`` joins
a GPM's solutions with it.
"""
