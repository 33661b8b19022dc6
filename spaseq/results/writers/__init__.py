"""The result formats: matches → bytes, a file a format."""
