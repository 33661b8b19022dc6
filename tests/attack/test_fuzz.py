"""A fixed budget of mutated bytes for each format, each in a process that may crash (see ``fuzz``)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from . import fuzz


@pytest.mark.few(0, ci=2)
@pytest.mark.parametrize("form", fuzz.ALL)
@pytest.mark.parametrize("count", [60, pytest.param(1_000, marks=pytest.mark.long)])
def test_mutated_bytes(form: str, count: int, tmp_path: Path) -> None:
    tried = tmp_path / "tried"
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-m", "tests.attack.fuzz", form, "1", str(count), str(tried)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, f"{tried.read_bytes()!r}\n{done.stderr[-3000:]}"
    assert done.stdout == f"{count}\n"
