"""The formats: bytes or rows → triples, quads and messages, a file a format."""
