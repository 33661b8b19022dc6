"""What an engine is made of: its ``core``, and what that does with queries and sources."""
