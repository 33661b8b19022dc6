"""Run queries that differ only in constants as one query over a table of parameters; open ``form`` first."""
