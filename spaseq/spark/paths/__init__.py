"""Path queries on Spark: in chunks of sources, by joins, or over GraphFrames."""
