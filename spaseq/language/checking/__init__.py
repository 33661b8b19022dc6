"""The static checks: what can be said against a query before it runs."""
