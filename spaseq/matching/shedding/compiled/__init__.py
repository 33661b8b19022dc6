"""What is done with an arena of runs between two events: passes over it, and what is known of its nodes."""
