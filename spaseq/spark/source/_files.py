"""Files at paths that every machine sees, or at ``file:`` and ``s3a:`` locations, by pyarrow's file systems.

S3 is configured as for Amazon's own tools: by ``AWS_ENDPOINT_URL``, ``AWS_REGION``, ``AWS_ACCESS_KEY_ID`` and
so on in the environment of driver and workers, by profiles or by roles.
"""

from __future__ import annotations

import glob
import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import IO, Final
from urllib.parse import unquote
from uuid import uuid4

from pyarrow import fs

from spaseq.errors import SourceError
from spaseq.sources._bytes import files_of
from spaseq.sources._options import COMPRESSED, EXTENSIONS

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(/.*)")
_S3: Final = "s3a://"

#: The beginning of names of unfinished files. Like Hadoop's readers, ours skip names that begin with a dot.
DRAFT: Final = ".draft-"


@dataclass(frozen=True, slots=True)
class Info:
    """What identifies a version of a file: its size in bytes, and when it was last written, in
    nanoseconds.
    """

    size: int
    written: int


def normal(location: str | Path) -> str:
    """A location as all machines know it: an absolute path, or ``s3a://bucket/…``.

    Raises SourceError for any other kind, and for a file on a host.

    >>> normal("file:///data/a%20b.nq"), normal("s3a://ticks/may"), normal("/data/a.nq")
    ('/data/a b.nq', 's3a://ticks/may', '/data/a.nq')
    """
    found = _SCHEME.fullmatch(str(location))
    if found is None:
        return str(Path(location).resolve())
    scheme, rest = found.groups()
    if scheme == "file":
        host, _, path = rest[2:].partition("/") if rest.startswith("//") else ("", "", rest[1:])
        if host not in ("", "localhost"):
            raise SourceError(f"{location} names a host, {host}: write file:///PATH")
        return str(Path(unquote("/" + path.lstrip("/"))).resolve())
    if scheme in ("s3a", "s3"):
        return f"{_S3}{rest.lstrip('/')}"
    raise SourceError(
        f"{location}: files of {scheme}: are neither read nor written here; known are paths, file: and s3a:"
    )


def is_local(location: str) -> bool:
    """Return whether a normal location is a path."""
    return not location.startswith(_S3)


def join(folder: str, name: str) -> str:
    """Return the location of a name in a folder."""
    return f"{folder.rstrip('/')}/{name}"


def names(folder: str) -> Iterator[str]:
    """Return the files in a folder, if the folder exists."""
    system, path = _system(folder)
    selector = fs.FileSelector(path, allow_not_found=True)
    for found in system.get_file_info(selector):
        if found.type is fs.FileType.File:
            yield found.path if is_local(folder) else _S3 + found.path


def info(location: str) -> Info | None:
    """Return a file's size and time of writing; None if it does not exist."""
    found = _info(location)
    return _known(found) if found.type is fs.FileType.File else None


def listed(location: str | Path) -> dict[str, Info]:
    """Return a stream's files in the order of their names: one file, or those of a folder or of a pattern.

    Raises SourceError if there are none.
    """
    place = normal(location)
    found = _listed_here(place) if is_local(place) else _listed_there(place)
    if found is None:
        raise SourceError(f"{place}: no such file, folder or pattern")
    return found


def _listed_here(location: str) -> dict[str, Info] | None:
    paths = files_of(location)
    if paths is None:
        paths = [Path(location).resolve()] if Path(location).exists() else None
    if paths is None:
        return None
    infos = ((str(path), path.stat()) for path in paths)
    return {path: Info(stat.st_size, stat.st_mtime_ns) for path, stat in infos}


def _listed_there(location: str) -> dict[str, Info] | None:
    """Return the files with sizes and times: one request lists a thousand of them."""
    path = location.removeprefix(_S3).rstrip("/")
    is_pattern = glob.has_magic(path)
    if not is_pattern and (one := info(_S3 + path)) is not None:
        return {_S3 + path: one}
    # The parts of the path before the first wildcard.
    fixed = next((i for i, part in enumerate(path.split("/")) if glob.has_magic(part)), None)
    folder = "/".join(path.split("/")[:fixed])
    deep = fixed is not None and fixed < path.count("/")
    selector = fs.FileSelector(folder, allow_not_found=True, recursive=deep)
    files = [file for file in _there().get_file_info(selector) if file.type is fs.FileType.File]
    if is_pattern:
        chosen = [file for file in files if _matches(file.path, path)]
    elif not files and _info(_S3 + path).type is fs.FileType.NotFound:
        return None
    else:
        known = [*EXTENSIONS, *COMPRESSED]
        chosen = [file for file in files if PurePosixPath(file.path).suffix.lower() in known]
    return {_S3 + file.path: _known(file) for file in sorted(chosen, key=lambda file: file.path)}


def is_of(path: str, location: str | Path) -> bool:
    """Return whether ``listed`` would find a file of this name, if it existed."""
    place = normal(location).rstrip("/")
    return place in (path, path.rpartition("/")[0]) or _matches(path, place)


def _matches(path: str, pattern: str) -> bool:
    """Return whether a path matches part by part, as in a shell; ``**`` is any number of folders."""
    parts, wanted = path.split("/"), pattern.split("/")
    if "**" in wanted:
        at = wanted.index("**")
        tail = "/".join(wanted[at + 1 :])
        starts = range(at, len(parts) + 1)
        head = _matches("/".join(parts[:at]), "/".join(wanted[:at]))
        return head and (not tail or any(_matches("/".join(parts[i:]), tail) for i in starts))
    return len(parts) == len(wanted) and all(map(fnmatchcase, parts, wanted))


def opened(location: str) -> IO[bytes]:
    """Open a file at any location for reading."""
    if is_local(location):
        return Path(location).open("rb")
    system, path = _system(location)
    return io.BufferedReader(system.open_input_file(path))


def write(location: str, data: bytes | memoryview) -> None:
    """Write a file atomically; it replaces an earlier one."""
    folder, _, name = location.rpartition("/")
    draft = f"{folder}/{DRAFT}{name}-{uuid4().hex}" if is_local(location) else location
    with drafted(draft) as out:
        out.write(data)
    if draft != location:
        move(draft, location)


@contextmanager
def drafted(location: str) -> Iterator[IO[bytes]]:
    """Open a new file for writing, which stays once it is closed; make its folder."""
    if is_local(location):
        path = Path(location)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        return
    system, path_there = _system(location)
    with system.open_output_stream(path_there) as out:
        yield out


def move(source: str, target: str) -> None:
    """Rename a file, replacing an earlier one; atomic also in an object store."""
    if is_local(source):
        Path(source).replace(target)
    else:
        system, path = _system(source)
        system.move(path, _system(target)[1])


def delete(location: str) -> None:
    """Delete a file if it exists."""
    if is_local(location):
        Path(location).unlink(missing_ok=True)
        return
    system, path = _system(location)
    with suppress(FileNotFoundError):
        system.delete_file(path)


def _known(found: fs.FileInfo) -> Info:
    return Info(found.size, found.mtime_ns or 0)


def _info(location: str) -> fs.FileInfo:
    system, path = _system(location)
    return system.get_file_info(path)


def _system(location: str) -> tuple[fs.FileSystem, str]:
    if is_local(location):
        return _here(), location
    return _there(), location.removeprefix(_S3)


@lru_cache(maxsize=1)
def _here() -> fs.FileSystem:
    return fs.LocalFileSystem()


@lru_cache(maxsize=1)
def _there() -> fs.FileSystem:
    # Arrow itself looks up neither of them.
    environment = os.environ.get
    endpoint = environment("AWS_ENDPOINT_URL_S3") or environment("AWS_ENDPOINT_URL")
    region = environment("AWS_REGION") or environment("AWS_DEFAULT_REGION")
    return fs.S3FileSystem(endpoint_override=endpoint, region=region)
