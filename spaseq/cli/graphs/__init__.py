"""The commands about graphs: ``spaseq paths``, ``retrieve`` and ``graph``. Open ``commands`` first."""
