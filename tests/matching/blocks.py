"""Blocks of matches as the matches in them, which their columns are compared with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from spaseq.events import Clock
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.columns.blocks.values import all_ids
from spaseq.matching.host import Key
from spaseq.matching.model import Found


def singly(blocks: Iterable[Block]) -> Iterator[tuple[Key, Found]]:
    """The matches of blocks; AssertionError where the columns of one say something else."""
    for block in blocks:
        found = list(block)
        assert len(found) == len(block) > 0
        _check(block, [match for _, match in found])
        if len(block) > 1:
            _check(block.part(1, len(block)), [match for _, match in found[1:]])
        yield from found


def _check(block: Block, found: list[Found]) -> None:
    assert [*zip(*(times.tolist() for times in block.spans()), strict=True)] == [m.span for m in found]
    assert block.sizes().tolist() == [match.size for match in found]
    chosen = block.chosen()
    events = [
        (chosen.names[gpm], id(chosen.batches[which]), index)
        for gpm, which, index in np.stack([chosen.gpm, chosen.which, chosen.index], axis=1).tolist()
    ]
    variables = sorted({name for match in found for row in match.rows for name in row.binding})
    solved = block.solved(variables)
    columns = {name: all_ids(column) for name, column in solved.columns.items()}
    _check_taken(block, found, [*chosen.names, "nothing"])
    for i, match in enumerate(found):
        begin, end = chosen.offsets[i : i + 2].tolist()
        assert events[begin:end] == [(gpm, id(batch), index) for gpm, batch, index in match.places]
        rows = [
            {name: column[j] for name, column in columns.items() if column[j]}
            for j in range(*solved.offsets[i : i + 2].tolist())
        ]
        assert rows == match.project(variables)


def _check_taken(block: Block, found: list[Found], gpms: list[str]) -> None:
    for gpm, of in block.events(gpms, Clock.TICKS, lambda ids: tuple(map(str, ids.tolist()))).items():
        streams = np.array([*map(int, of.streams)], dtype=np.int64)
        stamps = [[b.stamp(i) for name, b, i in match.places if name == gpm] for match in found]
        assert np.diff(of.offsets).tolist() == [*map(len, stamps)]
        flat = [stamp for of_match in stamps for stamp in of_match]
        assert list(zip(of.time, streams[of.stream], of.n, strict=True)) == flat
