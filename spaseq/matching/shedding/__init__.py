"""Best effort under a bound (Sharp): of the kernel's partial matches, those that matter most are kept."""
