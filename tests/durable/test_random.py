"""An engine that is killed and started again, at any point, gives what one gives that never was."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import spaseq
from spaseq.engine.durable import journal, state
from spaseq.language.syntax import Ask
from tests.conftest import examples
from tests.engine.test_many_queries import Answers, _answers, _do, _steps

seeds = st.integers(0, 2**64 - 1)
Steps = list[tuple[str, object]]


class Restarted:
    """An engine with a state: what it did since the last commit is lost when it is killed, and done anew."""

    def __init__(self, path: Path, options: dict[str, object]) -> None:
        self._path, self._options = path, options
        self.restarts = 0
        self.answers: dict[str, Answers] = {}
        self._known: dict[str, int] = {}
        self.engine = self._open()

    def _open(self) -> spaseq.Engine:
        return spaseq.Engine(state=self._path, commit_every=None, **self._options)  # type: ignore[arg-type]

    def take(self, name: str) -> None:
        if name in self.engine.queries:
            self.answers.setdefault(name, []).extend(_answers(self.engine.queries[name]))

    def commit(self) -> None:
        self.engine.commit()
        self._known = {name: len(found) for name, found in self.answers.items()}

    def kill(self) -> None:
        self.engine.abandon()
        self.restarts += 1
        self.answers = {name: self.answers[name][:count] for name, count in self._known.items()}
        self.engine = self._open()


def run(steps: Steps, rng: random.Random, path: Path, options: dict[str, object]) -> Restarted:
    """Compares an engine that goes on with one that is killed now and then."""
    whole, killed = spaseq.Engine(**options), Restarted(path, options)  # type: ignore[arg-type]
    answers: dict[str, Answers] = {}
    for number, (what, said) in enumerate(steps):
        _take_step(whole, number, what, said)
        for name, handle in whole.queries.items():
            answers.setdefault(name, []).extend(_answers(handle))
    at = committed = 0
    before: dict[str, object] = {}
    kills = rng.choice([0.1, 0.3])
    while at < len(steps):
        what, said = steps[at]
        if what == "cancel" and f"q{said}" in killed.engine.queries:
            killed.take(f"q{said}")
        if what == "finish":
            for name in killed.engine.queries:
                killed.take(name)
        before = dict(killed.engine.queries)
        _take_step(killed.engine, at, what, said)
        at += 1
        if what == "finish":
            break
        for name in sorted(killed.engine.queries):
            if rng.random() < 0.6:
                killed.take(name)
        if rng.random() < 0.4:
            killed.commit()
            committed = at
        if rng.random() < kills:
            killed.kill()
            at = committed
    for name, handle in before.items():
        assert isinstance(handle, spaseq.Handle)
        killed.answers.setdefault(name, []).extend(_answers(handle))
    for name, handle in whole.queries.items():
        if not handle.is_cancelled:
            other = before[name]
            assert isinstance(other, spaseq.Handle)
            found, expected = killed.answers.get(name, []), answers.get(name, [])
            assert found == expected, name
            if not _ends(handle):  # what that counts of the event that ends it hangs on what came with it
                assert _counts(other.stats) == _counts(handle.stats), handle.query.text
    assert killed.engine.late == whole.late
    assert killed.engine.bad == whole.bad
    return killed


def _ends(handle: spaseq.Handle) -> bool:
    return handle.query.modifiers.limit is not None or isinstance(handle.query.form, Ask)


def _counts(stats: spaseq.Stats) -> spaseq.Stats:
    return replace(stats, shared_with=0, shared=())


def _take_step(engine: spaseq.Engine, number: int, what: str, said: object) -> None:
    if what == "register":
        name, text = said  # type: ignore[misc]
        engine.register(text, name=name)
    elif what == "cancel":
        if f"q{said}" in engine.queries:
            engine.queries[f"q{said}"].cancel()
    elif what == "finish":
        engine.finish()
    else:
        _do(number, what, said)(engine)


def _named(steps: Iterator[tuple[str, object]]) -> Steps:
    count = 0
    out: Steps = []
    for what, said in steps:
        if what == "register":
            out.append((what, (f"q{count}", said)))
            count += 1
        else:
            out.append(("finish", None) if what == "close" else (what, said))
    return out


@settings(max_examples=examples(40), phases=[Phase.explicit, Phase.generate])
@given(seeds)
@pytest.mark.slow
def test_any_queries(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    rng = random.Random(seed)
    options: dict[str, object] = {"lateness": timedelta(seconds=rng.choice([0, 0, 1, 3]))}
    path = tmp_path_factory.mktemp("state") / "s.db"
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore", spaseq.SpaseqWarning)
        patch.setattr(journal, "BLOCK", rng.choice([1, 3, 2_048]))
        patch.setattr(state, "PER_QUERY", 0)
        run(_named(_steps(rng)), rng, path, options)
