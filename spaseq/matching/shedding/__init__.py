"""Shedding under a bound (Sharp): partial matches of lowest utility are dropped to keep latency and memory.

``matcher`` is the matcher (open it first). Partial matches are grouped into classes (``features``). The rates
at which a class advances (``rates``) give the expected matches and work (``cost_model``). ``overload``
detects the load, ``burst`` filters bursts. ``lazy`` sheds buffered events, ``skip`` first events of AFTER
MATCH SKIP. ``account`` counts.
"""
