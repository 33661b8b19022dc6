"""The runs kernel gives what the reference gives, in whatever batches the events come."""

from __future__ import annotations

import json
import random
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal

from spaseq.automaton.pattern import SequencePattern, normalise
from spaseq.errors import SpaseqWarning
from spaseq.events import Stamp
from spaseq.language.parser import parse
from spaseq.matching import _kernel_memory as mem
from spaseq.matching.context import Context, Rows
from spaseq.matching.kernel import Kernel
from spaseq.matching.kernel_tables import fits
from spaseq.matching.model import Bounds, Occurrence
from spaseq.terms import Dictionary
from tests.matching.kernel_cases import (
    Query,
    Sample,
    batches,
    by_kernel,
    by_reference,
    random_query,
    random_sample,
)
from tests.matching.random_sequences import Case, cases
from tests.matching.test_vectors import run

#: Streams for each random query.
STREAMS = 12


@pytest.mark.parametrize("seed", range(100))
def test_kernel_equals_the_reference(seed: int) -> None:
    rng = random.Random(seed)
    compared = 0
    while compared < 120:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SpaseqWarning)
            query = random_query(rng)
        if fits(query.pattern) is not None:
            continue
        for _ in range(STREAMS):
            sample = random_sample(rng, query, 9)
            sizes = [rng.randrange(1, 5) for _ in range(rng.randrange(4))]
            assert by_kernel(sample, sizes) == by_reference(sample), f"{sizes}\n{sample}"
            compared += 1


@settings(max_examples=300)
@given(cases(), st.lists(st.integers(1, 4), max_size=3))
def test_kernel_equals_the_reference_on_the_sequences_of_runs(case: Case, sizes: list[int]) -> None:
    assume(fits(case.pattern) is None)
    sample = Sample(
        Query(case.text, case.pattern, {}, {}, {}), case.context._dictionary, case.bounds, case.events
    )
    assert by_kernel(sample, sizes) == by_reference(sample)
