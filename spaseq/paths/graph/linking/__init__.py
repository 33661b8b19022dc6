"""Names → the nodes and predicates that are called so."""
