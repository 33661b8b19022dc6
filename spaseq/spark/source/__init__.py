"""Events in: files, folders, topics and users' columns as rows of events."""
