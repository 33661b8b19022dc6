"""What servers are read with: a file a scheme."""
