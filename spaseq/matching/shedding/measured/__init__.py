"""What events take: measured, foreseen, and told apart by what it is for."""
