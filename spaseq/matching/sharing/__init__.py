"""Queries whose sequences begin alike, as one automaton: partial matches are shared up to where they part."""
