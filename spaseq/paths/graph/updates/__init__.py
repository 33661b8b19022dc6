"""Graphs that change: merging added and removed triples, and standing queries."""
