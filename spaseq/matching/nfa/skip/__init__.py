"""AFTER MATCH SKIP: find the preferred match of each first event by a priority simulation.

``matcher`` runs it over columns, by tables (open it first); ``simulation`` describes the algorithm, and runs
it event by event. ``preference`` compares runs, ``tables`` compiles a query for the loops of ``compiled``,
and ``ranked`` orders the events of several streams.
"""
