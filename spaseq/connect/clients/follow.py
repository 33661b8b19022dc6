"""``file:…?follow``: a file that grows, is begun anew or is replaced, as ``tail -F`` reads it."""

from __future__ import annotations

import os
from collections.abc import Generator
from datetime import timedelta
from pathlib import Path
from typing import Final

from spaseq.connect.live import Ending
from spaseq.errors import SourceError
from spaseq.sources import SourceOptions
from spaseq.sources._bytes import BLOCK
from spaseq.sources._options import COMPRESSED, resolve_format

#: Seconds between two looks at a file that has not grown.
_LOOK: Final = 0.1


class EndedError(Exception):
    """A read that waits is to end."""


def check_followed(path: str, options: SourceOptions) -> None:
    """Raises SourceError for a file that cannot be followed."""
    if not Path(path).is_file():
        raise SourceError(f"{path}: no such file to follow (relative to {Path.cwd()})")
    if path.endswith(COMPRESSED):
        raise SourceError(
            f"{path}: a compressed file cannot be followed: its end is known only when it is closed"
        )
    if resolve_format(path, options) == "jsonld":
        raise SourceError(
            f"{path}: a JSON-LD document has to be read whole: follow ndjsonld, a document a line"
        )
    if options.order == "time":
        raise SourceError(f"{path}: order=time waits for the end, which a file that is followed has not")


def growing(path: str, ending: Ending, pause: timedelta | None) -> Generator[bytes, None, None]:
    """What is in a file and what is added, until the source is to end: then it raises EndedError.

    A file that became shorter is read from its beginning; so is one that took the place of another, when that
    was read to its end. A line that either leaves incomplete ends there. ``pause``: an empty block says that
    for so long nothing came.
    """
    limit = None if pause is None else pause.total_seconds()
    ends_line, silent = True, 0.0
    file = open(path, "rb")  # noqa: SIM115  # which may be another in time
    try:
        while not ending.is_set:
            block = file.read(BLOCK)
            if block:
                yield block
                ends_line, silent = block.endswith(b"\n"), 0.0
                continue
            own, new = os.fstat(file.fileno()), _found(path)
            if own.st_size < file.tell():
                file.seek(0)
            elif new is not None and not os.path.samestat(own, new):
                # Written to between the two looks, before it was replaced.
                if rest := file.read(BLOCK):
                    yield rest
                    ends_line = rest.endswith(b"\n")
                    continue
                file.close()
                try:
                    file = open(path, "rb")  # noqa: SIM115  # the same
                except FileNotFoundError:  # for a moment
                    file = open(os.devnull, "rb")  # noqa: SIM115  # until it is there
            else:
                ending.wait(_LOOK)
                silent += _LOOK
                if limit is not None and silent - _LOOK < limit <= silent:
                    yield b""
                continue
            if not ends_line:
                yield b"\n"
                ends_line = True
    except OSError as error:
        raise SourceError(f"{path} cannot be followed: {error.strerror or error}") from error
    finally:
        file.close()
    raise EndedError


def _found(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None
