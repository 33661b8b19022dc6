"""AFTER MATCH SKIP: find the preferred match of each first event by a priority simulation.

Open ``matcher`` first. ``simulation`` describes the algorithm.
"""
