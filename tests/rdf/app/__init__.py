"""An app that knows rdflib and SPARQL, and has never heard of spaseq."""
