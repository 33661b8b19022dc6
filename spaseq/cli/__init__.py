"""The ``spaseq`` command: ``app.py`` declares the commands (open it first); each command has a file."""

from spaseq.cli.app import app, main

__all__ = ["app", "main"]
