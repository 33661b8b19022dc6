"""AFTER MATCH SKIP: find the preferred match of each first event by a priority simulation.

Open ``evaluator`` first. ``simulation`` describes the algorithm.
"""
