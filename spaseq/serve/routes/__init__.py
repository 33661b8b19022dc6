"""What can be asked of the server, a file a resource."""
