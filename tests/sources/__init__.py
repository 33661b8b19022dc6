"""Sources: bytes to batches of events."""
