"""Retrieval for language models: the paths that answer a question, the best first."""
