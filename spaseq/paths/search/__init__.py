"""Searches of the product of a graph and an automaton."""
