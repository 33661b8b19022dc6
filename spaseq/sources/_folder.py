"""A stream in several files: the files of a folder, or of a pattern, sorted by name."""

from __future__ import annotations

import glob
from pathlib import Path

from spaseq.sources._options import COMPRESSED, EXTENSIONS


def files_of(location: str | Path) -> list[Path] | None:
    """Return the files of a folder that have a format's extension, or of a pattern; None if it is neither."""
    path = Path(location)
    if path.is_dir():
        known = [*EXTENSIONS, *COMPRESSED]
        return sorted(p.resolve() for p in path.iterdir() if p.suffix.lower() in known and p.is_file())
    if not path.exists() and glob.has_magic(str(location)):
        found = glob.glob(str(location), recursive=True)
        return sorted(Path(p).resolve() for p in found if Path(p).is_file())
    return None
