"""The parts that all matchers over columns share: batches, history, and ``blocks`` of matches.

Open ``matcher`` first: it defines what such a matcher does.
"""
