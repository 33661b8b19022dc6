"""GPM evaluation: SPECTRA's views and joins, the general route, expressions, the background KB."""
