"""Background graphs: in every worker, or joined as DataFrames where they are large."""
