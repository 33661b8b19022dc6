"""``python -m tests.benchmarks guard``: fourteen ratios to fixed work, for before and after a change.

Each figure is the CPU time of a peer (Oxigraph's parser, ``json.loads``, a NumPy pass) divided by that of
spaseq: higher is better. Two processes measure each figure. In each process spaseq and the peer run in turn.
A figure is the median of all pairs; ``±`` is half of their interquartile range. ``--against REV`` measures
the package of that revision, too, in turn with this one, over the queries and events of this guard. It takes
twice as long, and a minute of compiling.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Final

from tests.benchmarks.guard_figures import FIGURES, Taken

ROOT: Final = Path(__file__).parents[2]
#: Processes that measure a figure. The layout of its memory alone moves some figures by a few percent.
_PROCESSES: Final = 2
#: A figure is marked if new divided by old is below this.
_LEAST: Final = 0.95


@dataclass(frozen=True, slots=True)
class Result:
    """A figure of one revision: the ratio and its spread, CPU seconds of a run; or why there is none."""

    ratio: float = 0.0
    spread: float = 0.0
    runs: int = 0
    code_seconds: float = 0.0
    peer_seconds: float = 0.0
    answers: int = 0
    error: str = ""

    @classmethod
    def of(cls, processes: Sequence[Taken | str]) -> Result:
        """Return the figure over all processes; the first error where one of them failed."""
        taken = [each for each in processes if isinstance(each, Taken)]
        if len(taken) < len(processes):
            return cls(error=next(each for each in processes if isinstance(each, str)))
        if len(answers := {each.answers for each in taken}) > 1:
            return cls(error=f"other answers each time: {sorted(answers)}")
        code, peer = ([s for each in taken for s in getattr(each, of)] for of in ("code", "peer"))
        ratios = [theirs / ours for ours, theirs in zip(code, peer, strict=True)]
        ratio = median(ratios)
        low, _, high = quantiles(ratios, n=4) if len(ratios) > 1 else (ratio, ratio, ratio)
        spread = (high - low) / 2 / ratio
        return cls(ratio, spread, len(ratios), median(code), median(peer), taken[0].answers)

    def __str__(self) -> str:
        return "–" if self.error else f"{self.ratio:.3g} ± {self.spread:.0%}"


def compare(old: Result, new: Result) -> str:
    """Return new/old, marked where it is too low, and the reason where it says nothing."""
    reasons = [f"{name}: {each.error}" for name, each in (("old", old), ("new", new)) if each.error]
    if not reasons and old.answers != new.answers:
        reasons = [f"answers differ: {old.answers:,} and {new.answers:,}"]
    if reasons:
        return f"–  {'; '.join(reasons)}"
    quotient = new.ratio / old.ratio
    return f"{quotient:.2f}" + (f"  < {_LEAST}" if quotient < _LEAST else "")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the figures asked for, print them, and write them as JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks guard",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=FIGURES, help=", ".join(FIGURES))
    parser.add_argument("--against", metavar="REV", help="a revision of git to compare with")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write the figures")
    parser.add_argument("--quick", action="store_true", help="small inputs: does it work, not how fast is it")
    given = parser.parse_args(arguments)
    names = given.only or list(FIGURES)
    packages = {"new": _this_package()}
    record = _record()
    if given.against is None:
        record["figures"] = list(_measured(names, packages, quick=given.quick))
    else:
        record["against"] = _git("rev-parse", "--short", f"{given.against}^{{commit}}")
        with _worktree(given.against) as old:
            record["figures"] = list(_measured(names, {"old": old, **packages}, quick=given.quick))
    if given.json:
        given.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def _measured(names: Sequence[str], packages: dict[str, Path], *, quick: bool) -> Iterator[dict[str, object]]:
    """Measure and print each figure; yield it as JSON."""
    for name in names:
        processes: dict[str, list[Taken | str]] = {which: [] for which in packages}
        for turn in range(1 if quick else _PROCESSES):
            # old, new, new, old: what drifts while they run concerns both.
            for which in list(packages)[:: -1 if turn % 2 else 1]:
                processes[which].append(_run(name, packages[which], quick=quick))
        results = {which: Result.of(taken) for which, taken in processes.items()}
        figure, new = FIGURES[name], results["new"]
        if "old" in results:
            old = results["old"]
            print(f"{name:<12} {old!s:>13} → {new!s:<13} {compare(old, new)}", flush=True)
        else:
            why = new.error or f"{new.runs} runs of {new.code_seconds:.3f} s"
            print(f"{name:<12} {new!s:>13} × {figure.peer:<17}  {figure.what} ({why})", flush=True)
        yield {"name": name, "what": figure.what, "peer": figure.peer} | {
            which: asdict(result) for which, result in results.items()
        }


def _run(name: str, package: Path, *, quick: bool) -> Taken | str:
    """Measure a figure of the package in a folder, in a new process. On failure return its last line."""
    environment = os.environ | {"PYTHONPATH": f"{package}{os.pathsep}{ROOT}", "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-P", "-m", "tests.benchmarks.guard_figures", name, *["--quick"] * quick]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        return (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    taken = Taken(**json.loads(done.stdout.splitlines()[-1]))
    if not Path(taken.package).is_relative_to(package):
        return f"measured {taken.package} instead of {package}"
    return taken


def _this_package() -> Path:
    """Return the folder that spaseq is imported from."""
    found = importlib.util.find_spec("spaseq")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parents[1]


@contextmanager
def _worktree(revision: str) -> Iterator[Path]:
    """Check out the package of a revision, and nothing else, in a folder that is deleted afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder).resolve() / "tree"
        _git("worktree", "add", "--quiet", "--detach", "--no-checkout", str(tree), revision)
        try:
            _git("-C", str(tree), "checkout", "--quiet", "HEAD", "--", "spaseq")
            yield tree
        finally:
            _git("worktree", "remove", "--force", str(tree))


def _record() -> dict[str, object]:
    """Return what was measured where."""
    return {
        "revision": _git("describe", "--always", "--dirty"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "load": round(os.getloadavg()[0], 1),
    }


def _git(*arguments: str) -> str:
    """Return what a command of git prints. Ends the program with git's error if it fails."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.strip()
