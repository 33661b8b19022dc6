"""Jars that tests need, from Maven Central: fetched once, and a reason to skip where that is impossible."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

_POMS = Path(__file__).parent / "jars"
_REQUIRED = frozenset(filter(None, os.environ.get("SPASEQ_REQUIRE", "").split(",")))


def unavailable(what: str, reason: str) -> None:
    """Skips a test that lacks something, or fails where ``SPASEQ_REQUIRE`` names it."""
    if what in _REQUIRED:
        pytest.fail(f"SPASEQ_REQUIRE asks for {what}: {reason}")
    pytest.skip(f"{what}: {reason}")


@cache
def jars(name: str, poms: Path = _POMS) -> tuple[Path, ...] | str:
    """The jars that ``POMS/NAME/pom.xml`` asks for, or why they are not to be had."""
    maven = shutil.which("mvn")
    if maven is None:
        return "there is no mvn to fetch jars with"
    folder = Path(os.environ.get("SPASEQ_JARS", Path(__file__).parents[2] / ".jars")) / name
    if not folder.exists():
        # Moved into place when complete: other workers, or a later run, must not see half of it.
        partial = folder.with_name(f"{name}.{os.getpid()}")
        command = [
            maven,
            "-q",
            "-B",
            "-Dstyle.color=never",
            "-f",
            str(poms / name / "pom.xml"),
            "dependency:copy-dependencies",
        ]
        done = subprocess.run(
            [*command, f"-DoutputDirectory={partial}"], capture_output=True, text=True, check=False
        )
        if done.returncode:
            shutil.rmtree(partial, ignore_errors=True)
            errors = [line for line in done.stdout.splitlines() if "ERROR" in line]
            return f"mvn could not fetch the jars of {name}: {errors[0] if errors else done.stderr}"
        try:
            partial.rename(folder)
        except OSError:
            shutil.rmtree(partial)
    return tuple(sorted(folder.glob("*.jar")))
