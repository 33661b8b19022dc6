"""Evaluate SPARQL expressions on typed values and on columns; open ``compiled`` first."""
