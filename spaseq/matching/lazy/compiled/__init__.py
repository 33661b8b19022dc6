"""The compiled loops of lazy evaluation: buffers of events, and the search begun by the last to arrive."""
