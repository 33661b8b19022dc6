"""Match ``,``-only sequences with equalities as conditions by an extended KMP.

``matcher`` is the matcher (open it first). ``query`` makes patterns of queries, ``program`` compiles them,
``text`` reads events as symbols, and ``_kernel`` searches. ``patterns`` and ``tree`` search words.

After du Mouza, Rigaux and Scholl, "Parameterized pattern queries" (2007).
"""
