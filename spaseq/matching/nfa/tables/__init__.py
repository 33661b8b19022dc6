"""Compile a query to the tables of ``kernel``: arrays that refer to their parts by offset.

Open ``compiling`` first.
"""
