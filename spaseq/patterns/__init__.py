"""Evaluate graph patterns (GPMs) on batches of events: SPARQL within one event.

``evaluator`` chooses the route of a pattern; open it first. ``spectra`` joins views of columns, ``oxigraph``
runs the remaining patterns, ``expressions`` has FILTER and BIND, and ``kb`` the background graphs.
"""
