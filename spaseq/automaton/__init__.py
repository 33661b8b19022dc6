"""Compile the sequence of a query to NFA_scep, the automaton that matchers run.

``pattern`` is the sequence as a tree, ``normal`` its normal form, and ``nfa`` the automaton (open it first).
``compile`` builds the automaton, ``passes`` optimise it, and ``draw`` and ``show`` print it.
"""
