"""The records of the lazy evaluator that come and go with events; ``query`` has those of its tables."""
