"""RDF terms: as integers in columns, as bytes in a table, as typed values, and as rdflib's.

Open ``dictionary`` first: it maps terms to integers.
"""
