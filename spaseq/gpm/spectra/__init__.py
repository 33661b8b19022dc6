"""The SPECTRA route: a batch's summary, its views, and their joins."""
