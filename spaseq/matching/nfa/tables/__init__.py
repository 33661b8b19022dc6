"""Compile a query to the tables of the NFA: arrays that refer to their parts by offset.

``compiling`` is the entry point (open it first). ``analysis`` determines slots, gates and conditions,
``absences`` the gaps of negations, and ``writer`` writes the arrays.
"""
