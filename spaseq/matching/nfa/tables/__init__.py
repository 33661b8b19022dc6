"""Compile a query to the tables of ``nfa``: arrays that refer to their parts by offset.

Open ``compiling`` first.
"""
