"""What all tests share: where the reference data lies, and the profiles of Hypothesis."""

from __future__ import annotations

import faulthandler
import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings

# The tests import each other's helpers as `tests.…`; at the end of the path, so that `spaseq` is the
# installed package and not the checkout.
ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT))

# What tests start finds the same package, and not the checkout's in whose folder it runs: that would test
# other code, and compile each kernel once more.
_found = importlib.util.find_spec("spaseq")
if _found is not None and _found.origin is not None:
    os.environ["PYTHONSAFEPATH"] = "1"
    _places = [os.environ.get("PYTHONPATH", ""), str(Path(_found.origin).parents[1]), str(ROOT)]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, _places))

# A shell's background job ignores Ctrl-C, and so would every process that the tests start to interrupt it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "ci",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
    print_blob=True,
    max_examples=20,
)
# Five hundred times as many examples as in CI, and new ones each time.
settings.register_profile("long", parent=settings.get_profile("ci"), derandomize=False, max_examples=10_000)
# What README's command runs: enough to see that all is well, in minutes.
settings.register_profile("quick", parent=settings.get_profile("ci"), max_examples=10)
settings.load_profile("quick")


def examples(many: int) -> int:
    """How many examples a test asks for that asks for ``many`` in CI: fewer of them in the quick profile."""
    share = (settings.default or settings()).max_examples
    return many if share >= 100 else max(5, many * share // 100)


#: The matchers whose kernels are compiled first, by the process that does it.
WARMED = (("nfa", "tecs", "kmp"), ("skip", "lazy", "bounded"))


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile the kernels before workers start, so that no two of them compile the same."""
    if getattr(session.config.option, "numprocesses", None) and not hasattr(session.config, "workerinput"):
        started = [
            subprocess.Popen([sys.executable, "-m", "tests.warm", *names], cwd=ROOT) for names in WARMED
        ]
        for process in started:
            process.wait()


def pytest_runtest_setup() -> None:
    """Let Python handle Ctrl-C in each test. PySpark leaves its own handler, which no turn defers."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark ``slow`` all but the first cases of a test that is marked ``few``, and ``long`` beyond its ``ci``.

    Mark ``data`` what reads the reference data: CI runs the others in a clone without it.
    """
    cases: dict[str, list[tuple[tuple[int, ...], pytest.Item]]] = {}
    for item in items:
        if item.get_closest_marker("few"):
            place = tuple(getattr(getattr(item, "callspec", None), "indices", {}).values())
            cases.setdefault(item.nodeid.partition("[")[0], []).append((place, item))
    for found in cases.values():
        found.sort(key=lambda case: case[0])
        few = found[0][1].get_closest_marker("few")
        assert few is not None
        others = [item for _, item in found[few.args[0] :]]
        for item in others:
            item.add_marker("slow")
        others.sort(key=lambda item: crc32(item.nodeid.encode()))  # some of each kind, always the same
        for item in others[few.kwargs.get("ci", len(found)) - few.args[0] :]:
            item.add_marker("long")
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.timeout(0))
        if "shared" in getattr(item, "fixturenames", ()):
            item.add_marker("data")


@pytest.fixture(autouse=True)
def _long_is_no_hang(request: pytest.FixtureRequest) -> None:
    """A test of volume may take longer than one of which the stacks are printed, as if it hung."""
    if request.node.get_closest_marker("long"):
        faulthandler.cancel_dump_traceback_later()


#: Real data and other systems' test cases, beside the checkout or where SPASEQ_SHARED says.
SHARED = Path(os.environ.get("SPASEQ_SHARED", ROOT.parent / "shared")) / "data"


@pytest.fixture(scope="session")
def shared() -> Callable[[str], Path]:
    """``shared("seq-vectors")``: the path of reference data, or a skip that says what is missing."""

    def find(name: str) -> Path:
        path = SHARED / name
        if not path.exists():
            pytest.skip(f"reference data, not part of this repository: no {path} (see tests/README.md)")
        return path

    return find
