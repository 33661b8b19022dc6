"""What ``/sparql`` asks: background graphs, the events in a query's window, matches of registered queries."""
