"""An interrupt at any call of some files: what came is with every query, or the query says that it is over.

Python looks for signals where a function begins, when one of C returns, and in loops. A profiler is called
in the first two of these places, and what it raises comes out there, as what a signal's handler raises does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from io import BytesIO
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import spaseq
from spaseq import Engine, Handle, Match, Source, SourceOptions
from spaseq.engine import handle as handles
from spaseq.engine.delivered import on_demand
from spaseq.engine.pipelines import flow, intake, visits
from spaseq.engine.pipelines.groups import group
from spaseq.engine.pushed import inbox
from spaseq.errors import SpaseqError
from spaseq.why.sample import Sample

PACKAGE = Path(spaseq.__file__).parent
STREAM = "http://example.org/s"
TIME = "<http://www.w3.org/ns/prov#generatedAtTime>"
INTEGER = "<http://www.w3.org/2001/XMLSchema#integer>"
#: So many events are there when something is interrupted, and so many follow.
BEFORE, AFTER = 9, 6
SEQUENCES = ("A ; B", "A ; !C ; B", "A : B+")
SKIPPING = " AFTER MATCH SKIP PAST LAST EVENT"


def query(sequence: str, condition: str = "") -> str:
    kinds = "abc"[: 2 + ("C" in sequence)]
    gpms = " ".join(
        f"DEFINE GPM {kind.upper()} ON S {{ ?x <urn:{kind}> ?{kind} {condition * (kind == 'a')} }}"
        for kind in kinds
    )
    return f"SELECT ?x WITHIN 9 SECONDS SLIDING FROM STREAM S <{STREAM}> WHERE {{ SEQ({sequence}) {gpms} }}"


SEVERAL = tuple(map(query, SEQUENCES))
#: Of its events, which come alone, no more than a few numbers is made.
ALONE = (query("A ; B"),)
#: The same beside one that reads another stream, too: an event is for two orders.
APART = (
    *ALONE,
    query("A ; B").replace("<urn:a>", "<urn:c>").replace("FROM", "FROM STREAM T <http://example.org/t> FROM"),
)
#: They run as one over a table of their constants, two of them with the same.
TEMPLATE = tuple(query("A ; B", f"FILTER(?a > {least})") for least in (-1, 2, 5, 5))
#: They run as one, which takes events that come alone.
EQUAL = 3 * ALONE
#: Such of which an event completes several matches.
TRIPLES = tuple(
    query("A : B : C", f"FILTER(?a > {least})").replace("WITHIN 9", "WITHIN 99") for least in (-1, 2, 5, 5)
)


#: They begin alike, and ``lazy`` runs them.
LAZY = tuple(
    query("A : B : C").replace("?c  }", f"?c . FILTER(?c {than}) }}").replace("WITHIN 9", f"WITHIN {size}")
    for size, than in ((9, "> ?a + ?b"), (12, "< ?a + ?b"), (12, "!= ?a + ?b"))
)

#: They begin alike, of each first event the preferred match alone is one, and some wait for time to pass.
ORDERED = tuple(
    query(f"A ; B{more}").replace("WITHIN 9", f"WITHIN {size}") + SKIPPING
    for size, more in ((9, "+ ; C"), (9, ""), (5, "+"))
)


@cache
def prepared(text: str) -> spaseq.Query:
    """A query, which is read once for all the engines that it is registered with."""
    return spaseq.prepare(text)


def event(number: int) -> str:
    return f"<urn:x> <urn:{'abc'[number % 3]}> {number} ."


def lines(numbers: range) -> bytes:
    return "".join(
        f'<urn:g{n}> {TIME} "{n}"^^{INTEGER} .\n<urn:x> <urn:{"abc"[n % 3]}> "{n}"^^{INTEGER} <urn:g{n}> .\n'
        for n in numbers
    ).encode()


@dataclass
class Calls:
    """The calls in a file of the package, while something is done."""

    file: str
    count: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        # A file that was moved would never be interrupted, and the test could not fail.
        assert any(str(path).endswith(f"/{self.file}") for path in PACKAGE.rglob("*.py")), self.file

    def __call__(self, frame: FrameType, kind: str, _: Any) -> None:
        if kind in ("call", "c_return") and frame.f_code.co_filename.endswith(self.file):
            self.count += 1
            self.happened(frame, kind)

    def happened(self, frame: FrameType, kind: str) -> None:
        """One of them, ``count`` by number."""

    def during(self, work: Callable[[], None]) -> bool:
        """Does something; whether it was interrupted."""
        sys.setprofile(self)
        try:
            work()
        except KeyboardInterrupt:
            return True
        finally:
            sys.setprofile(None)
        return False


@dataclass
class Sites(Calls):
    """From where to where calls are made, with the numbers of those that are."""

    sites: dict[tuple[object, ...], list[int]] = field(default_factory=dict, init=False)

    def happened(self, frame: FrameType, kind: str) -> None:
        caller = None if frame.f_back is None else (frame.f_back.f_code, frame.f_back.f_lineno)
        site = (kind, frame.f_code, frame.f_lineno, caller)
        self.sites.setdefault(site, []).append(self.count)

    def chosen(self) -> list[int]:
        """Of each site the first three calls, one for each kind of event, one in the midst, and the last."""
        of_each = ((*numbers[:3], numbers[len(numbers) // 2], numbers[-1]) for numbers in self.sites.values())
        return sorted(set().union(*of_each))


@dataclass
class AtCall(Calls):
    """Interrupts the call of this number."""

    number: int = 0

    def happened(self, frame: FrameType, kind: str) -> None:
        del frame, kind
        if self.count == self.number:
            sys.setprofile(None)
            raise KeyboardInterrupt


Chosen = tuple[tuple[str, tuple[int, ...]], ...]


def chosen(match: Match) -> Chosen:
    return tuple((name, tuple(event.n for event in events)) for name, events in match.events.items())


@dataclass
class Run:
    """Queries in an engine, with or without a callback, and what they gave."""

    called_back: bool
    queries: tuple[str, ...] = SEVERAL
    engine: Engine = field(default_factory=Engine)
    handles: list[Handle] = field(default_factory=list)
    found: list[list[Match]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for text in self.queries:
            mine: list[Match] = []
            self.found.append(mine)
            self.handles.append(
                self.engine.register(prepared(text), on_match=mine.append if self.called_back else None)
            )

    def push(self, numbers: range) -> None:
        for number in numbers:
            self.engine.push(STREAM, event(number), number)

    def push_many(self) -> None:
        self.engine.push_many(STREAM, [(event(number), number) for number in range(BEFORE)])

    def feed(self) -> None:
        source = Source(STREAM, BytesIO(lines(range(BEFORE))), SourceOptions(format="nq"))
        self.engine.feed(source)

    def matches(self) -> None:
        for handle, mine in zip(self.handles, self.found, strict=True):
            for match in handle.matches():
                mine += [match]

    def batches(self) -> None:
        for handle, mine in zip(self.handles, self.found, strict=True):
            for batch in handle.batches(2):
                mine += batch

    def each(self) -> None:
        for number in range(BEFORE):
            self.push(range(number, number + 1))
            self.matches()

    def finish(self) -> Iterator[tuple[list[Chosen], bool]]:
        """What each query gave in the end, and whether it failed."""
        self.push(range(self.engine.arrived.get(STREAM, 0), BEFORE + AFTER))
        for handle, mine in zip(self.handles, self.found, strict=True):
            try:
                mine += handle.matches()
            except SpaseqError:
                yield [], True
            else:
                yield sorted(map(chosen, mine)), handle.error is not None


WORK: dict[str, Callable[[Run], None]] = {
    "push": lambda run: run.push(range(BEFORE)),
    "push_many": Run.push_many,
    "feed": Run.feed,
    "matches": Run.matches,
    "batches": Run.batches,
    "each": Run.each,
}


@pytest.mark.few(2, ci=6)
@pytest.mark.filterwarnings("ignore::spaseq.SpaseqWarning")
@pytest.mark.parametrize(
    ("what", "called_back", "file"),
    [
        ("push", True, "engine/delivered/undelivered.py"),
        ("push_many", True, "engine/delivered/undelivered.py"),
        ("push", False, "pipelines/flow.py"),
        ("push", True, "pipelines/flow.py"),
        ("push_many", False, "pipelines/flow.py"),
        ("feed", False, "pipelines/flow.py"),
        ("feed", True, "pipelines/flow.py"),
        ("matches", False, "engine/delivered/undelivered.py"),
        ("matches", False, "engine/handle.py"),
        ("batches", False, "engine/delivered/undelivered.py"),
        ("batches", False, "engine/handle.py"),
        ("push_many", True, "parts/core.py"),
        ("feed", True, "parts/core.py"),
        ("push", True, "conditions/numbers.py"),
        ("push_many", False, "conditions/numbers.py"),
        ("push", True, "terms/dictionary.py"),
        ("push", False, "sharing/cohort.py"),
        ("push_many", True, "sharing/member.py"),
        ("push", True, "sharing/group.py"),
        ("push_many", False, "sharing/by_kernel.py"),
        ("push_many", False, "sharing/giving.py"),
    ],
)
def test_an_interrupt_at_any_call(what: str, called_back: bool, file: str) -> None:
    is_clean_at_any_call(what, called_back, file, SEVERAL)


@pytest.mark.few(0, ci=3)
@pytest.mark.filterwarnings("ignore::spaseq.SpaseqWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    ("what", "called_back", "file"),
    [
        ("push", True, "groups/group.py"),
        ("push_many", False, "groups/group.py"),
        ("matches", False, "groups/crowd.py"),
        ("push_many", True, "groups/crowd.py"),
        ("batches", False, "engine/handle.py"),
        ("push_many", False, "templates/table.py"),
    ],
)
def test_an_interrupt_at_any_call_of_queries_that_run_as_one(what: str, called_back: bool, file: str) -> None:
    is_clean_at_any_call(what, called_back, file, TEMPLATE)


@pytest.mark.few(0, ci=3)
@pytest.mark.filterwarnings("ignore::spaseq.SpaseqWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    ("what", "called_back", "file"),
    [
        ("push_many", False, "enumeration/rest.py"),
        ("push_many", True, "enumeration/rest.py"),
        ("matches", False, "enumeration/reading.py"),
        ("batches", False, "groups/seats.py"),
    ],
)
def test_an_interrupt_at_any_call_of_queries_with_matches_left_to_each(
    what: str, called_back: bool, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in ((group, "_AT_ONCE"), (group, "_EACH"), (on_demand, "AT_ONCE"), (handles, "AT_ONCE")):
        monkeypatch.setattr(module, name, 1)
    is_clean_at_any_call(what, called_back, file, TRIPLES)


@pytest.mark.few(1, ci=3)
@pytest.mark.filterwarnings("ignore::spaseq.SpaseqWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    "file",
    [
        "pushed/pushing.py",
        "parts/core.py",
        "pipelines/flow.py",
        "pipelines/intake.py",
        "pipelines/visits.py",
        "pipelines/pipeline.py",
        "pipelines/attending.py",
        "engine/registered.py",
        "engine/delivered/on_demand.py",
        "engine/delivered/undelivered.py",
        "kernel/evaluator.py",
        "columns/batches.py",
        "columns/history.py",
        "alone/singles.py",
        "conditions/numbers.py",
        "terms/identified.py",
        "engine/pushed/plain.py",
        "terms/dictionary.py",
    ],
)
@pytest.mark.parametrize("what", ["push", "each"])
def test_an_interrupt_at_any_call_of_events_that_come_alone(
    what: str, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "Sample", partial(Sample, 1, 1))  # those that it wants are made objects of
    passed: list[bool] = []
    passes = flow.Flow.passes

    def noted(*event: Any) -> bool:
        passed.append(passes(*event))
        return passed[-1]

    monkeypatch.setattr(flow.Flow, "passes", noted)
    is_clean_at_any_call(what, what == "push", file, ALONE)
    assert any(passed)


@pytest.mark.few(1, ci=3)
@pytest.mark.filterwarnings("ignore::spaseq.SpaseqWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    "file",
    [
        "pipelines/flow.py",
        "pipelines/visits.py",
        "pipelines/pipeline.py",
        "pipelines/attending.py",
        "engine/registered.py",
        "groups/crowd.py",
        "groups/group.py",
        "groups/seats.py",
        "kernel/evaluator.py",
    ],
)
@pytest.mark.parametrize("what", ["push", "each"])
def test_an_interrupt_at_any_call_of_events_that_come_alone_to_equal_queries(
    what: str, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "Sample", partial(Sample, 1, 1))
    is_clean_at_any_call(what, what == "push", file, EQUAL)


@pytest.mark.few(1, ci=3)
@pytest.mark.filterwarnings("ignore::spaseq.SpaseqWarning")
@pytest.mark.parametrize(
    ("sequence", "file"),
    [
        ("A : B", "enumeration/alone.py"),
        ("A : B", "enumeration/evaluator.py"),
        ("A : B", "enumeration/memory.py"),
        ("A : B+", "alone/taking.py"),
        ("ALL(A, B)", "lazy/evaluator.py"),
        ("ALL(A, B)", "lazy/memory.py"),
        ("A , B", "parameterized/alone.py"),
        ("A , B", "parameterized/evaluator.py"),
        ("A , B", "parameterized/text.py"),
        ("A ; !C", "kernel/evaluator.py"),
        ("A ; !C", "kernel/trailing.py"),
        ("A ; B?", "pipelines/flow.py"),
        ("A ; B?", "pipelines/visits.py"),
        (f"A ; B+ ; C{SKIPPING}", "ordered/evaluator.py"),
        (f"A ; B{SKIPPING}", "ordered/memory.py"),
        (f"A ; B+{SKIPPING}", "pipelines/flow.py"),
        (f"A ; B+{SKIPPING}", "pipelines/visits.py"),
        (f"A ; B+{SKIPPING}", "pipelines/intake.py"),
    ],
)
def test_an_interrupt_at_any_call_of_evaluators_of_events_that_come_alone(
    sequence: str, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "Sample", partial(Sample, 1, 1))
    text = query(sequence.removesuffix(SKIPPING)) + SKIPPING * sequence.endswith(SKIPPING)
    is_clean_at_any_call("push", True, file, (text,))


@pytest.mark.few(0, ci=2)
@pytest.mark.filterwarnings("ignore::spaseq.SpaseqWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    ("what", "sequence", "file"),
    [
        ("push", "A ; B ; C", "pipelines/flow.py"),
        ("push", "A ; B ; C", "pipelines/visits.py"),
        ("push", "A ; B ; C", "sharing/by_kernel.py"),
        ("push", "A ; B ; C", "sharing/member.py"),
        ("push", "A : B : C", "sharing/by_enumeration.py"),
        ("each", "A : B : C", "pipelines/visits.py"),
        ("each", "A ; B ; C", "sharing/group.py"),
    ],
)
def test_an_interrupt_at_any_call_of_events_that_come_alone_to_queries_that_begin_alike(
    what: str, sequence: str, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "Sample", partial(Sample, 1, 1))
    queries = tuple(query(sequence).replace("WITHIN 9", f"WITHIN {size}") for size in (9, 12, 15))
    is_clean_at_any_call(what, what == "push", file, queries)


@pytest.mark.few(0, ci=2)
@pytest.mark.filterwarnings("ignore::spaseq.SpaseqWarning")
@pytest.mark.parametrize(
    "file", ["pipelines/flow.py", "pipelines/intake.py", "pipelines/order.py", "pipelines/pipeline.py"]
)
def test_an_interrupt_at_any_call_of_events_that_come_alone_to_several(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "Sample", partial(Sample, 1, 1))
    is_clean_at_any_call("push", True, file, APART)


@pytest.mark.few(0, ci=3)
@pytest.mark.filterwarnings("ignore::spaseq.SpaseqWarning")
@pytest.mark.parametrize(
    ("what", "called_back", "file"),
    [
        ("push", True, "sharing/by_lazy.py"),
        ("push_many", False, "sharing/by_lazy.py"),
        ("push_many", True, "lazy/evaluator.py"),
    ],
)
def test_an_interrupt_at_any_call_of_queries_that_share_events(
    what: str, called_back: bool, file: str
) -> None:
    is_clean_at_any_call(what, called_back, file, LAZY)


@pytest.mark.few(0, ci=2)
@pytest.mark.filterwarnings("ignore::spaseq.SpaseqWarning")
@pytest.mark.parametrize(
    ("what", "called_back", "file"),
    [
        ("push", True, "sharing/by_ordered.py"),
        ("push_many", False, "sharing/by_ordered.py"),
        ("push", True, "sharing/member.py"),
        ("push_many", True, "ordered/evaluator.py"),
    ],
)
def test_an_interrupt_at_any_call_of_queries_whose_runs_are_of_several(
    what: str, called_back: bool, file: str
) -> None:
    is_clean_at_any_call(what, called_back, file, ORDERED)


def is_clean_at_any_call(what: str, called_back: bool, file: str, queries: tuple[str, ...]) -> None:
    whole = Run(called_back, queries)
    whole.push(range(BEFORE + AFTER))
    expected = [found for found, _ in whole.finish()]

    def begun() -> Run:
        run = Run(called_back, queries)
        if what in ("matches", "batches"):
            run.push(range(BEFORE))
        return run

    run, calls = begun(), Sites(file)
    calls.during(lambda: WORK[what](run))
    assert calls.count
    interrupted = 0
    for number in calls.chosen():
        run = begun()
        interrupted += AtCall(file, number).during(lambda: WORK[what](run))  # noqa: B023  # called at once
        for text, found, (given, is_over) in zip(queries, expected, run.finish(), strict=True):
            assert is_over or given == found, f"{text}, interrupted at call {number}"
    assert interrupted


@pytest.mark.parametrize("file", ["pipelines/visits.py", "delivered/on_demand.py"])
@pytest.mark.slow
def test_what_has_waited_until_it_is_worth_a_visit_is_taken_once(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several queries, which nobody reads before the end."""
    events = range(BEFORE + 1)
    monkeypatch.setattr(inbox, "MOST_EVENTS", BEFORE)  # the first does not wait
    monkeypatch.setattr(visits, "ENOUGH", BEFORE - 1)
    queries = (query("A ; B"), query("A : B"))
    whole = Run(called_back=False, queries=queries)
    whole.push(range(BEFORE + AFTER))
    expected = [found for found, _ in whole.finish()]
    number, was_interrupted = 0, True
    while was_interrupted:
        number += 1
        run = Run(called_back=False, queries=queries)
        run.push(events[:-1])
        was_interrupted = AtCall(file, number).during(lambda: run.push(events[-1:]))  # noqa: B023  # at once
        for text, found, (given, is_over) in zip(queries, expected, run.finish(), strict=True):
            assert is_over or given == found, f"{text}, interrupted at call {number}"
    assert number > 3
