"""Our engine beside its peers: the same events, the same question, one run."""
