"""All matches at constant cost an event, enumerated when asked for (CORE: tECS)."""
