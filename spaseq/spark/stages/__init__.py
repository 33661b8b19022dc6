"""The two stages: solutions of GPMs from events, and matches from solutions, bucket by bucket."""
