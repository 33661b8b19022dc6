"""The lazy evaluator under a bound: which of the events in its buffers it gives up."""
