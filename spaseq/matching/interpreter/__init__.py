"""The eager NFA_scep in plain Python, event by event, for the whole language; open ``machine`` first."""
