"""What the server keeps to show: the newest matches, events and dead letters."""
