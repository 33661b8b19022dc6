"""Make each fault in a copy of a checkout, and run tests there: which commands notice it?

    python -m tests.mutants --root CHECKOUT --tests 'tests/matching' [NUMBER ...]   # a row of JSON each
    python -m tests.mutants --list

``--tests`` are arguments of pytest, which stops at the first failure; ``{package}`` stands for the fault's
package. The tests import the copy, not an installed wheel. Not part of CI: it takes hours.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from tests.mutants.faults import FAULTS, Fault, make

ROOT = Path(__file__).parents[2]


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("numbers", type=int, nargs="*", help="of the faults; all of them if none is given")
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout that is copied")
    parser.add_argument("--tests", default="-n auto --dist loadfile", help="arguments of pytest")
    parser.add_argument(
        "--list", action="store_true", help="only show the faults, and whether they can be made"
    )
    options = parser.parse_args()
    for fault in FAULTS:
        if not options.numbers or fault.number in options.numbers:
            row = _try(fault, options.root) if options.list else _run(fault, options.root, options.tests)
            print(json.dumps({**asdict(fault), **row}), flush=True)


def _try(fault: Fault, root: Path) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        copy = _copy(root, Path(folder))
        try:
            return {"file": str(make(fault, copy).relative_to(copy))}
        except LookupError as error:
            return {"error": str(error)}


def _run(fault: Fault, root: Path, tests: str) -> dict[str, object]:
    """Whether tests notice a fault, in what time, and the first that does."""
    with tempfile.TemporaryDirectory() as folder:
        copy = _copy(root, Path(folder))
        try:
            make(fault, copy)
        except LookupError as error:
            return {"error": str(error)}
        begin = time.monotonic()
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            *shlex.split(tests.format(package=fault.package)),
        ]
        done = subprocess.run(
            command,
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy)},
            capture_output=True,
            text=True,
            check=False,
        )
        failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
        killed = None if done.returncode not in (0, 1, 2) else done.returncode != 0
        return {"killed": killed, "seconds": round(time.monotonic() - begin), "by": failed and failed[1]}


def _copy(root: Path, folder: Path) -> Path:
    """A copy of a checkout with the compiled kernels beside it, which stay valid but for what is changed."""
    ignored = shutil.ignore_patterns(".git", ".venv", ".mypy_cache", ".hypothesis", ".pytest_cache", ".jars")
    shutil.copytree(root, folder / "checkout", ignore=ignored)
    return folder / "checkout"


if __name__ == "__main__":
    main()
