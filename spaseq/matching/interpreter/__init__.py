"""The eager NFA_scep in plain Python, event by event, for the whole language.

``machine`` runs the automaton (open it first). ``program`` is the automaton in its form, ``state`` has the
runs, ``absence`` decides negations and ``X?``, and ``matcher`` is the matcher for one partition.
"""
