"""Graphs that change: triples that come and go, and queries that go on."""
