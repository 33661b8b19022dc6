"""What the server keeps to show: the newest matches (``history``), events (``recent``) and dead letters."""
