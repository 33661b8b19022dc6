"""Compiled kernels are kept where that is possible, and read from wherever they are."""

from __future__ import annotations

import ast
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from spaseq import _jit

MODULE = """
from spaseq._jit import kernel

@kernel
def twice(a):
    for i in range(len(a)):
        a[i] *= 2

@kernel
def thrice(a):
    for i in range(len(a)):
        a[i] *= 3
"""

#: No place can be written to: that is how numba asks.
READ_ONLY = """
import tempfile
def refuse(*arguments, **options): raise PermissionError("read-only")
tempfile.TemporaryFile = refuse
"""

PROGRAM = """
import numpy as np, warnings
from m_kernel import thrice, twice
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    a = np.ones(2)
    twice(a), thrice(a), twice(a)
print(a.tolist(), sum(twice.stats.cache_hits.values()), len(told), *(w.category.__name__ for w in told))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "m_kernel.py").write_text(MODULE)
    return tmp_path


def execute(folder: Path, head: str = "", **changes: str) -> str:
    names = ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", head + PROGRAM],
        cwd=folder,
        env=environment | {"PYTHONPATH": path, "HOME": "/proc/nowhere"} | changes,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.slow
def test_in_a_read_only_installation_they_are_loaded(folder: Path) -> None:
    assert execute(folder) == "[12.0, 12.0] 0 0"
    assert execute(folder) == "[12.0, 12.0] 1 0"
    assert execute(folder, READ_ONLY) == "[12.0, 12.0] 1 0"


@pytest.mark.slow
def test_without_any_place_they_are_compiled_and_one_line_says_so(folder: Path) -> None:
    assert execute(folder, READ_ONLY) == "[12.0, 12.0] 0 1 SpaseqWarning"
    assert not [*folder.rglob("*.nbi")]


@pytest.mark.slow
def test_what_stands_beside_the_source_is_loaded_by_who_writes_elsewhere(
    folder: Path, tmp_path: Path
) -> None:
    assert execute(folder) == "[12.0, 12.0] 0 0"
    elsewhere = str(tmp_path / "elsewhere")
    assert execute(folder, NUMBA_CACHE_DIR=elsewhere) == "[12.0, 12.0] 1 0"


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.slow
def test_a_damaged_file_is_compiled_again(folder: Path, suffix: str) -> None:
    """Whatever bit is another one, and wherever the file ends: nothing of it is read."""
    assert execute(folder) == "[12.0, 12.0] 0 0"
    (file,) = folder.rglob(f"*twice*.{suffix}")
    whole = file.read_bytes()
    half = len(whole) // 2
    for damaged in (whole[:half], b"", whole[:half] + bytes([whole[half] ^ 1]) + whole[half + 1 :]):
        file.write_bytes(damaged)
        assert execute(folder) == "[12.0, 12.0] 0 0"
        assert execute(folder) == "[12.0, 12.0] 1 0"


@pytest.mark.slow
def test_every_bit_of_a_kept_kernel_counts(folder: Path) -> None:
    """A bit of machine code that is another one would be run."""
    execute(folder)
    rng = random.Random(1)
    for file in folder.rglob("*.nb?"):
        whole = file.read_bytes()
        assert _jit._is_whole(str(file))
        for number in range(300):
            at = rng.randrange(len(whole))
            changed = bytearray(whole)
            changed[at] ^= 1 << rng.randrange(8)
            file.write_bytes(changed if number % 5 else whole[:at])
            assert not _jit._is_whole(str(file))


def test_a_kernel_is_compiled_anew_when_what_it_is_made_of_changes_and_only_then() -> None:
    """What a file with kernels imports is found by its lines: each must be one that is found."""
    package = Path(_jit.__file__).parent
    for file in package.rglob("*kernel*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                assert not any(name.name.startswith("spaseq") for name in node.names), file
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("spaseq"):
                assert node.level == 0
                place = package.parent.joinpath(*(node.module or "").split("."))
                modules = [place / f"{name.name}.py" for name in node.names] if place.is_dir() else []
                found = _jit._read(file)[1]
                assert {*modules} <= found if modules else place.with_suffix(".py") in found, (
                    file,
                    node.module,
                )
    terms, skip = (
        package / "terms" / "_table_kernel.py",
        package / "matching" / "nfa" / "skip" / "compiled" / "_kernel.py",
    )
    assert skip not in _jit._read(terms)[1]
    walk = package / "matching" / "tecs" / "compiled" / "_kernel_walk.py"
    assert walk.with_name("_kernel_node.py") in _jit._read(walk)[1], "a module that is used by its name"
    assert _jit._stamp(terms) != _jit._stamp(skip)


PARTS = """
from spaseq._jit import inlined, kernel, part

@inlined
def twice(x):
    return 2 * x

@part
def power(x, n):
    y = 1
    for _ in range(n):
        y = y * twice(x)
    return y

@kernel
def powers(a):
    for i in range(len(a)):
        a[i] = power(a[i], 3) + power(a[i], 2)
"""


@pytest.mark.slow
def test_parts_are_compiled_with_their_kernels_and_not_by_themselves(tmp_path: Path) -> None:
    (tmp_path / "p_kernel.py").write_text(PARTS)
    program = """
from numba.core.codegen import JITCodeLibrary
import numpy as np
made, finalize = [], JITCodeLibrary._finalize_specific
def count(self):
    made.extend([self.name] * (self.name != "nrt"))
    finalize(self)
JITCodeLibrary._finalize_specific = count
from p_kernel import powers
a = np.array([1.0, 3.0])
powers(a)
print(a.tolist(), made, sum(powers.stats.cache_hits.values()))
"""
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path, "NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    printed = [
        subprocess.run(
            [sys.executable, "-c", program], env=environment, cwd=tmp_path, capture_output=True, check=True
        ).stdout.decode()
        for _ in range(2)
    ]
    assert printed == ["[12.0, 252.0] ['powers'] 0\n", "[12.0, 252.0] ['powers'] 1\n"]
