"""The records of the ordered kernel, a module for each, with a name for each field; see the runs kernel's."""
