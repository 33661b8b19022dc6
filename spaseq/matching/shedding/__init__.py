"""Shedding under a bound (Sharp): partial matches of lowest utility are dropped to keep latency and memory.

Classes of partial matches (``features``) have rates of going on (``rates``), from which follow the matches
and the work to be expected (``cost_model``). An overload detector (``overload``) says how much is too much,
the matcher (``matcher``: open it first) sheds, and bursts are passed over (``burst``). ``lazy`` sheds
buffered events, ``skip`` the first events of AFTER MATCH SKIP. ``account`` counts what was shed.
"""
