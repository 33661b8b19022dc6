"""What a file was made of: whether that is still what it was."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spaseq.errors import KnowledgeError


@dataclass(frozen=True, slots=True)
class Origin:
    """What a graph was loaded from, as it was then; ``name`` as seen from the folder of what was made."""

    name: str
    size: int
    modified: int  # nanoseconds
    digest: str

    @classmethod
    def of(cls, source: Path, made: Path) -> Origin:
        """A file as it is now. Raises OSError."""
        stat = source.stat()
        name = os.path.relpath(source.absolute(), made.absolute().parent)
        return cls(name, stat.st_size, stat.st_mtime_ns, _digest(source))

    def as_json(self) -> dict[str, Any]:
        """As ``of_json`` reads it."""
        return {
            "name": self.name, "size": self.size, "modified": self.modified, "digest": self.digest
        }  # fmt: skip

    @classmethod
    def of_json(cls, facts: dict[str, Any]) -> Origin:
        """From what ``as_json`` gave."""
        return cls(facts["name"], facts["size"], facts["modified"], facts["digest"])

    def check(self, made: Path) -> None:
        """KnowledgeError if the file is another one now; one that is not there, made can do without.

        Its text is read only where its size is the same and its time is not.
        """
        source = made.absolute().parent / self.name
        try:
            stat = source.stat()
            if (stat.st_size, stat.st_mtime_ns) == (self.size, self.modified):
                return
            if stat.st_size == self.size and _digest(source) == self.digest:
                return
        except OSError:
            return
        shown = os.path.normpath(made.parent / self.name)
        raise KnowledgeError(
            f"{made}: it was made of {shown}, which has changed since: make it anew with "
            f"spaseq graph build {shown} -o {made}"
        )


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
