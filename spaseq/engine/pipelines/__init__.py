"""Queries at work: events are ordered, each goes to the queries it concerns, and these make matches.

``pipeline`` is one query (open it first), with its graph ``patterns``; ``dispatcher`` has all queries of an
engine, and their due work. ``reordering`` holds events until the watermark; ``stream_set`` and ``routes`` say
which queries an event concerns. ``query_set`` runs equal queries as one, with a subscription for each.
"""
