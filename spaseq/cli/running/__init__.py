"""The commands that run queries: embedded, on Spark, with a state or a cursor that a restart goes on from."""
