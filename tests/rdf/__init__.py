"""Tests of spaseq inside rdflib."""
