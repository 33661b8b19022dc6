"""The PySpark host."""
