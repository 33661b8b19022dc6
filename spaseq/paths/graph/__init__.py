"""Knowledge graphs: loaded, kept, changed, and called by the names that people give."""
