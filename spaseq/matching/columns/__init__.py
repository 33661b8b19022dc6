"""What evaluators over columns share: batches, history, and ``blocks`` of matches."""
