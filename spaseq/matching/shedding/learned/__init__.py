"""What is learned of partial matches: classes by what conditions compare, and what comes of each."""
