"""Filters between GPMs as programs of a postfix machine over term ids.

``postfix`` translates a filter into steps (open it first), ``programs`` writes the steps into tables.
``_kernel_machine`` runs them; ``numbers`` holds the terms' values. ``derived`` computes the rest in Python.
"""
