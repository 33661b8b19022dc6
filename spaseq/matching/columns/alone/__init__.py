"""Events pushed one at a time: store them by the hundred and join their graph patterns by compiled code."""
