"""Lazy evaluation: events wait in buffers, and matches are put together beginning with what is rarest."""
