"""A query as tables for the runs kernel: arrays, with references as places in them."""
