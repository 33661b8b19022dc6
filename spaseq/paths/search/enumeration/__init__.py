"""The paths themselves, one after the other, as they are asked for."""
