"""Ctrl-C wherever it comes: no query ends, no event is lost, no match comes twice."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest


def run(program: str, *arguments: object, cwd: Path | None = None) -> None:
    """Run one of ``interrupted.py``'s programs in a process of its own."""
    command = [sys.executable, "-m", "tests.attack.interrupted", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=cwd)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("times", [7, pytest.param(30, marks=pytest.mark.slow)])
@pytest.mark.parametrize("program", ["script", "handled", "late", "registering"])
def test_at_random_calls(program: str, times: int) -> None:
    run(program, times)


@pytest.mark.few(3)
@pytest.mark.parametrize("program", ["flood", "twice", "async_engine", "async_plain", "replaced", "thread"])
def test_where_the_engine_is(program: str) -> None:
    run(program)


@pytest.mark.slow
def test_a_state_has_what_an_interrupt_left(tmp_path: Path) -> None:
    run("durable", cwd=tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("uvicorn") is None, reason="no uvicorn: spaseq[serve]")
def test_in_a_web_server() -> None:
    run("web_server")


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("pyspark") is None, reason="no PySpark: spaseq[spark]")
def test_beside_a_spark_context() -> None:
    run("spark", 30)


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ipykernel") is None, reason="ipykernel is not installed")
def test_in_a_notebook() -> None:
    run("notebook")
