"""``python -m spaseq.samples``: write the use cases' streams, background graphs and queries."""

from __future__ import annotations

import argparse
from pathlib import Path

from spaseq.samples import EVENTS, SEED, USE_CASES, files, use_case


def main() -> None:
    """Write ``DIR/streams`` and ``DIR/kb``, and print a summary."""
    parser = argparse.ArgumentParser(prog="python -m spaseq.samples", description=main.__doc__)
    parser.add_argument(
        "--seed", type=int, default=SEED, help="another seed, other data (default: %(default)s)"
    )
    parser.add_argument(
        "--events", type=int, default=EVENTS, help="events of each use case, about (default: %(default)s)"
    )
    parser.add_argument("--out", type=Path, default=Path(), metavar="DIR", help="where to (default: here)")
    arguments = parser.parse_args()
    for name in USE_CASES:
        case = use_case(name, arguments.seed, arguments.events)
        for path, text in files(case).items():
            target = arguments.out / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8", newline="\n")
        events = sum(len(stream.events) for stream in case.streams)
        planted = ", ".join(f"{query} {len(matches)}" for query, matches in case.planted.items())
        print(f"{name}: {events} events; matches: {planted}")


if __name__ == "__main__":
    main()
