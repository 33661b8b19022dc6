"""SPARQL's expressions: compiled, on typed values, and as filters of columns."""
