"""The ``spaseq`` command: ``app`` declares its arguments, and there is a file for each command."""

from spaseq.cli.app import app, main

__all__ = ["app", "main"]
