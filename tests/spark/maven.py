"""Jars that tests need, from Maven Central: fetched once, and a reason to skip where that is impossible."""

from __future__ import annotations

import os
import shutil
import subprocess
import zipfile
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
        # What Maven fetched wrongly stays in its own store, which is not checked again: once more without it.
        why = _fetch(maven, poms / name / "pom.xml", partial) and _fetch(
            maven, poms / name / "pom.xml", partial, f"-Dmaven.repo.local={partial}.store"
        )
        shutil.rmtree(f"{partial}.store", ignore_errors=True)
        if why:
            shutil.rmtree(partial, ignore_errors=True)
            return f"mvn could not fetch the jars of {name}: {why}"
        try:
            partial.rename(folder)
        except OSError:
            shutil.rmtree(partial)
    return tuple(sorted(folder.glob("*.jar")))


def _fetch(maven: str, pom: Path, folder: Path, *options: str) -> str:
    """Fetches the jars of a pom into a folder; why they are not there, empty where they are, and whole."""
    shutil.rmtree(folder, ignore_errors=True)
    command = [maven, "-q", "-B", "--strict-checksums", "-Dstyle.color=never", "-f", str(pom), *options]
    command += ["dependency:copy-dependencies", f"-DoutputDirectory={folder}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        errors = [line for line in done.stdout.splitlines() if "ERROR" in line]
        return errors[0] if errors else done.stderr or f"it ended with {done.returncode}"
    return next((f"{jar.name} is damaged" for jar in folder.glob("*.jar") if not _whole(jar)), "")


def _whole(jar: Path) -> bool:
    try:
        with zipfile.ZipFile(jar) as file:
            return file.testzip() is None
    except zipfile.BadZipFile:
        return False
