"""The compiled loops of lazy evaluation: buffers, and the search that the last event of a match starts.

Open ``_kernel`` first.
"""
