"""Knowledge graphs: loading, saving, changing them, and finding nodes and predicates by name."""
