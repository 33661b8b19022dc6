"""The SPECTRA route: summarise a batch, build its views and join them; open ``joins`` first."""
