"""Registered queries: each alone or in a query set, and by name so that a state finds them again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pyoxigraph import NamedNode

from spaseq.automaton.pattern import SequencePattern
from spaseq.bounds import Bound, Policy, Pool, clock_given, latency_given, policy_given, weight_given
from spaseq.engine.core import Core
from spaseq.engine.handle import Handle
from spaseq.engine.pipelines.cuts import begins_anew
from spaseq.engine.pipelines.patterns import Environment
from spaseq.engine.pipelines.pipeline import Pipeline
from spaseq.errors import EngineError, warn
from spaseq.language.syntax import Query
from spaseq.matching.shedding.query import is_monotone
from spaseq.matching.templates.form import form
from spaseq.patterns.kb import KnowledgeBase
from spaseq.results.batch import Match

if TYPE_CHECKING:
    from spaseq.engine.durable.journal import Changed
    from spaseq.engine.durable.state import EngineState


#: Called with every match.
OnMatch = Callable[[Match], None]


class EngineBounds:
    """The bounds of an engine's queries, beyond which partial matches are shed; see ``Engine``."""

    def __init__(
        self,
        latency: timedelta | None,
        memory: int | None,
        policy: Policy | str,
        clock: Callable[[], float],
    ) -> None:
        self._latency = None if latency is None else latency_given(latency)
        self._pool = None if memory is None else Pool(memory)
        self._policy, self._clock = policy_given(policy), clock_given(clock)

    @property
    def are_set(self) -> bool:
        """Whether the engine has bounds, apart from those of single queries."""
        return self._latency is not None or self._pool is not None

    def of(self, latency: timedelta | None, weight: float) -> Bound | None:
        """Return the bounds of a query; None if it has none."""
        weight = weight_given(weight)
        seconds = self._latency if latency is None else latency_given(latency)
        if seconds is None and self._pool is None:
            return None
        return Bound(seconds, self._pool, weight, self._policy, self._clock)


#: The bounds of a query itself; None if it has none.
_Bound = tuple[float | None, float] | None


class Registry:
    """The queries of an engine. ``named``: the handles of the named ones."""

    def __init__(self, core: Core, kb: KnowledgeBase, matcher: str | None) -> None:
        self._core = core
        self._kb, self._matcher = kb, matcher
        self.named: dict[str, Handle] = {}
        # The bounds they were registered with.
        self._under: dict[str, _Bound] = {}
        #: Background graphs that existed when queries of a state named them.
        self.gone: set[NamedNode] = set()
        # The queries that make a stream under a bound.
        self._makers: list[Pipeline] = []

    def restore(self, path: str | Path, every: int | timedelta | None, lateness: timedelta) -> EngineState:
        """Resume from a state file; ``every``: how often the state is written to it.

        Raises ``EngineError`` for a file that is not a state or is already in use, and for an invalid
        ``every``.
        """
        # Imported here, because compiled code takes a while to load.
        from spaseq.engine.durable.horizon import every_given
        from spaseq.engine.durable.replay import Restored
        from spaseq.engine.durable.state import EngineState

        core = self._core
        core.turn.used = True  # an open file must not be used after a fork
        settings = {"lateness": str(lateness), "matcher": self._matcher or ""}
        state = EngineState(
            path, every_given(every), settings, core.dispatcher, core.rejects, core.dictionary
        )
        try:
            with core.turn.deferral, core.turn.lock:
                state.open(
                    Restored(core.dispatcher, core.dictionary, self.restored, core.forget, self.change)
                )
        except BaseException:
            state.close()
            raise
        finally:
            self.gone.clear()
        self.named = state.handles
        return state

    def restored(self, query: Query, start: int | None) -> Handle:
        """Add a query of a state; ``start``: when its first window began."""
        return self.add(query, None, None, start, outlives=True)

    def change(self, what: Changed) -> None:
        """Change a background graph as a state says."""
        name, triples = what.read()
        self._kb.change(name, triples)
        if triples is None:
            self.gone.add(name)

    def register(
        self,
        query: Query,
        on_match: OnMatch | None,
        bound: Bound | None,
        name: str | None,
        is_replaced: bool,
    ) -> Handle:
        """Register a query, with or without a name; see ``Engine.register``."""
        from spaseq.engine.durable.horizon import UNREPEATED, name_given, repeatable

        name, state = name_given(name), self._core.state
        known = self.named.get(name)
        given = None if bound is None else (bound.latency, bound.weight)
        if known is not None and not known.is_cancelled:
            is_same = known.query == query and self._under.get(name) == given
            if is_same and not (is_replaced and known.is_over):
                known.call(on_match)
                self._core.perform(known.deliver)
                return known
            if not is_replaced:
                bounds = " with other bounds" if known.query == query else ""
                raise EngineError(
                    f"there is another query of the name {name!r}, {known.name}{bounds}: take another name, "
                    "or say replace=True to end that one and start this one in its place"
                )
        if state is not None:
            if bound is not None:
                raise EngineError(UNREPEATED)
            repeatable(query)
        before = known if known is not None and not known.is_cancelled else None
        if state is None:
            handle = self.named[name] = self.add(query, on_match, bound)
        else:
            handle = state.register(name, query, lambda: self.add(query, on_match, outlives=True))
        self._under[name] = given
        if before is not None:
            before.cancel()
        return handle

    def add(
        self,
        prepared: Query,
        on_match: OnMatch | None,
        bound: Bound | None = None,
        start: int | None = None,
        *,
        outlives: bool = False,
    ) -> Handle:
        """Add a query. ``start``: when its first window began; ``outlives``: it is part of a state."""
        core = self._core
        self._kb.require(prepared, self.gone)
        kb = self._kb.restrict(prepared.knowledge)
        environment = Environment(core.dictionary, kb, core.sharing, core.limits)
        own = form(prepared) if self._matcher is None and bound is None else None
        # In a query set, it is unknown where the query's partitions began anew.
        is_alone = own is None or (outlives and begins_anew(prepared))
        key = None if own is None or is_alone else (*own.key, start)
        if (
            own is not None
            and key is not None
            and (query_set := core.dispatcher.query_set(key, environment)) is not None
        ):
            subscription = query_set.subscription(prepared)
            handle = Handle(
                subscription, on_match, core.turn, core.limits, core.contexts, is_counted=outlives
            )
            self._take_in(handle, partial(query_set.join, subscription, handle, own.constants))
            return handle
        pipeline = Pipeline(prepared, environment, self._matcher, start, bound)
        if outlives:
            pipeline.answers.outlive()
        handle = Handle(pipeline, on_match, core.turn, core.limits, core.contexts, is_counted=outlives)
        if pipeline.unkept is not None:
            warn(f"query {handle.name} {pipeline.unkept}")
        self._makers = [maker for maker in self._makers if not maker.done]
        for maker in self._makers:
            _warn_of(maker, prepared, pipeline.pattern)
        if pipeline.sheds and pipeline.output is not None:
            self._makers.append(pipeline)
            for other in core.dispatcher.queries:
                _warn_of(pipeline, other.pipeline.query, other.pipeline.pattern)
        self._take_in(handle, partial(core.dispatcher.add, pipeline, handle, key))
        if on_match is not None:
            pipeline.load()
        return handle

    def _take_in(self, handle: Handle, enter: Callable[[], None]) -> None:
        """Add a query to the engine. After an interrupt it is removed: the caller has no handle."""
        try:
            enter()
        except BaseException:
            handle.cancel()
            self._core.dispatcher.prune()
            raise


def _warn_of(maker: Pipeline, reader: Query, pattern: SequencePattern) -> None:
    """Warn if a query may find false matches, because a stream that it reads is made under a bound."""
    output = maker.output
    if all(stream.iri != output for stream in reader.streams) or is_monotone(pattern):
        return
    warn(
        f"{output} is made under a bound, and a query reads it that asks what is absent, next or counted: "
        "where an event was given up, it may find a match that is none"
    )
