"""Parameterized patterns: ``,``-only sequences whose events are compared by equality, by an extended KMP.

After du Mouza, Rigaux and Scholl, "Parameterized pattern queries" (2007).
"""
