"""The formats: bytes or rows → triples, quads and messages, one file per format.

``lines.py`` (N-Quads, N-Triples) is the simplest; open it first.
"""
