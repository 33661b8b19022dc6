"""The faults, each by the function that it stands in and what is changed there.

A fault names no file, so that it can be made again after files move. If a function was renamed or rewritten,
write the fault anew for what does the same work now.
"""

from __future__ import annotations

import ast
import textwrap
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Fault:
    """In ``function`` (``Class.method``) of a package, ``old`` becomes ``new``; it stands there once."""

    number: int
    package: str
    function: str
    old: str
    new: str


def _faults(package: str, *rows: tuple[str, str, str]) -> list[tuple[str, str, str, str]]:
    return [(package, *row) for row in rows]


_ALL = [
    *_faults(
        "matching",
        ("look_back", "entries.axis(m, x) < oldest", "entries.axis(m, x) <= oldest"),
        ("_precedes", "number < limit", "number <= limit"),
        ("is_due", "axis > reach_after(", "axis >= reach_after("),
        ("end", ">= reach_before(header.now(m)", "> reach_before(header.now(m)"),
        ("completed", "verdict == UNKNOWN or nothing == UNKNOWN", "verdict == UNKNOWN"),
        ("take", "stored.time(m.rows, previous) == time and ", ""),
        ("free", "top(nodes, following & mask) < least", "top(nodes, following & mask) <= least"),
        (
            "union",
            "top(nodes, far & mask) > top(nodes, near & mask)",
            "top(nodes, far & mask) < top(nodes, near & mask)",
        ),
        ("follows", " and (waits.barred(m, w) >> stream) & 1 == 0", ""),
        ("_refused", "if verdict != TRUE:", "if verdict == UNKNOWN:"),
        ("_Index.ranges", 'side="left"', 'side="right"'),
        ("_Sorted.find", "self._values[place] == wanted", "self._values[place] >= wanted"),
    ),
    *_faults(
        "patterns",
        ("Views.path", "return event, o, s\n", "return event, s, o\n"),
        ("ColumnFilter._compare", "numbers & (promoted | told_apart)", "numbers"),
        ("_Needs._path", "self._path(inner, o, s)", "self._path(inner, s, o)"),
        ("asks_once", " and not volatile(expression)", ""),
        ("_lone", " if s != o:", ":"),
    ),
    *_faults(
        "engine",
        ("Reordering.add", "behind > self.lateness", "behind >= self.lateness"),
        (
            "Reordering.release",
            "self.watermark - 1 if len(holding) > 1 else self.watermark",
            "self.watermark",
        ),
        (
            "Reordering._reached",
            "max(clock.newest - self.lateness, clock.promised, self._least)",
            "clock.newest - self.lateness",
        ),
        (
            "Dispatcher.enter",
            "if self.arrivals[stream] > before:",
            "if self.arrivals[stream] > before + 1:",
        ),
        ("Rejects.still", "with self._lock:\n            yield", "yield"),
        ("Core.check_unclosed", "if self.is_closing:", "if False:"),
    ),
    *_faults(
        "paths",
        ("point", "while k <= keys[i]:", "while k < keys[i]:"),
        ("Expansion.useful", ">= 0", "> 0"),
        ("Expansion.remaining", "return min(", "return max("),
        ("Paths._next", "if self._left == 0:", "if self._left == 1:"),
    ),
    *_faults(
        "spark",
        ("Bucket.add", "if said.begin >= watermark:", "if said.begin > watermark - 2:"),
        ("Bucket.close", "self._told = self.reached\n", "pass\n"),
        (
            "Stateless._numbers",
            "np.where(complete, numbers.astype(np.int64), -1)",
            "numbers.astype(np.int64)",
        ),
    ),
]

FAULTS = [Fault(number, *row) for number, row in enumerate(_ALL, 1)]


def make(fault: Fault, root: Path) -> Path:
    """Write a fault into the checkout at ``root``; return the file. Raises LookupError if it has no place."""
    found = [
        (path, begin, end)
        for path in sorted((root / "spaseq" / fault.package).rglob("*.py"))
        for begin, end in _functions(path, fault.function)
        if fault.old in "\n".join(path.read_text().split("\n")[begin - 1 : end]) + "\n"
    ]
    if len(found) != 1:
        raise LookupError(f"{len(found)} functions {fault.function} of {fault.package} have {fault.old!r}")
    path, begin, end = found[0]
    lines = path.read_text().split("\n")
    body = "\n".join(lines[begin - 1 : end]) + "\n"
    if body.count(fault.old) != 1:
        raise LookupError(f"{fault.function} has {fault.old!r} {body.count(fault.old)} times")
    lines[begin - 1 : end] = body.replace(fault.old, fault.new).removesuffix("\n").split("\n")
    path.write_text("\n".join(lines))
    return path


def _functions(path: Path, name: str) -> list[tuple[int, int]]:
    """The first and last lines of the functions of this name in a file."""
    *owner, name = name.split(".")
    tree: ast.AST = ast.parse(textwrap.dedent(path.read_text()))
    found = []
    for scope in ast.walk(tree):
        if isinstance(scope, ast.ClassDef if owner else ast.Module) and getattr(scope, "name", None) in (
            *owner,
            None,
        ):
            found += [
                (node.lineno, node.end_lineno or node.lineno)
                for node in ast.iter_child_nodes(scope)
                if isinstance(node, ast.FunctionDef) and node.name == name
            ]
    return found
