"""The map of packages in architecture.md, and the imports in spaseq/ → docs/packages.svg, or what is wrong.

    python docs/packages.py            draws docs/packages.svg
    python docs/packages.py --check    says which imports go upwards or in a circle, and what the map lacks
    python docs/packages.py --files    the map of files: a table per package, as on the site

The map is the table whose first column holds paths of packages and modules; a module belongs to the
longest path that it begins with, so a row may be split into several. A file's first line is its row in the
map of files: one sentence, which no other file of its folder has. A file of few lines has several users, or
else belongs into the file that uses it. A package imports only from packages above its own row, and a
guarded package is imported only by the modules named for it. Imports inside functions, and for types, count
as all others; but modules may name each other's types, so a circle is one of imports that are executed.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import chain
from pathlib import Path
from typing import Final

import networkx as nx

ROOT: Final = Path(__file__).parents[1]
MAP: Final = ROOT / "docs" / "architecture.md"
PICTURE: Final = ROOT / "docs" / "packages.svg"

#: Modules outside the map: the public package, which names what the others offer.
PUBLIC: Final = {"spaseq"}

#: Imports upwards that are left, (module, prefix of what it imports), and why each is there.
KNOWN: Final = {
    (
        "spaseq.why.replay",
        "spaseq.engine",
    ): "why() runs the query again; the engine only counts what it needs",
}

#: Packages that few may import, and which: a fault in the judge would be one of what it judges, too.
GUARDED: Final = {"spaseq.matching.reference": {"spaseq.matching.planner"}}

#: A module of fewer lines must have two users. A record of kernels has a module of its own, however small:
#: the module's name is the record's.
LEAST_LINES: Final = 30
SMALL: Final = {"spaseq.__main__"}
RECORDS: Final = "records"


@dataclass(frozen=True, slots=True)
class Package:
    """A row of the map: its paths (``spaseq/patterns/``, ``spaseq/terms.py``) and its second cell."""

    paths: tuple[str, ...]
    flow: str

    @property
    def name(self) -> str:
        return self.paths[0].removeprefix("spaseq/").rstrip("/").removesuffix(".py")


@dataclass(frozen=True, slots=True)
class Import:
    """One module imports another."""

    module: str
    imported: str
    place: str  # file:line
    is_for_types: bool

    @property
    def is_known(self) -> bool:
        return any(
            within(self.module, module) and within(self.imported, imported) for module, imported in KNOWN
        )


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def packages(text: str) -> list[Package]:
    """The rows of the map, in order."""
    found = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)]
        paths = re.findall(r"`(spaseq/[^`]*)`", cells[1]) if len(cells) > 3 else []
        if paths:
            found.append(Package(tuple(paths), cells[2].replace("`", "")))
    return found


def modules(root: Path) -> dict[str, Path]:
    """All modules of the package by their dotted names."""
    found = {}
    for path in sorted((root / "spaseq").rglob("*.py")):
        name = ".".join(path.relative_to(root).with_suffix("").parts)
        found[name.removesuffix(".__init__")] = path
    return found


def imports(root: Path, files: dict[str, Path]) -> Iterator[Import]:
    """What each module imports of the package, wherever in the file it does."""
    for module, path in files.items():
        for node, is_for_types in nodes(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                members = [f"{node.module}.{alias.name}" for alias in node.names]
                names = [member if member in files else node.module for member in members]
            else:
                continue
            for name in dict.fromkeys(names):
                if name in files:
                    yield Import(module, name, f"{path.relative_to(root)}:{node.lineno}", is_for_types)


def nodes(tree: ast.AST, is_for_types: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """All nodes below one, and whether they stand under ``if TYPE_CHECKING``."""
    for node in ast.iter_child_nodes(tree):
        asks = (
            isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        )
        yield node, is_for_types
        yield from nodes(node, is_for_types or asks)


def circles(found: list[Import]) -> Iterator[str]:
    """Modules that import each other, one after the other, with one way around."""
    graph = nx.DiGraph()
    graph.add_edges_from(
        (each.module, each.imported, {"place": each.place})
        for each in found
        if not each.is_for_types and each.module != each.imported
    )
    graph.remove_nodes_from([*PUBLIC])
    for part in nx.strongly_connected_components(graph):
        if len(part) > 1:
            around = nx.find_cycle(graph.subgraph(sorted(part)))
            yield "a circle of imports: " + ", ".join(graph.edges[edge]["place"] for edge in around)


def intrusions(found: list[Import]) -> Iterator[str]:
    """Imports of a guarded package from outside, by a module that is not named for it."""
    for each in found:
        for package, users in GUARDED.items():
            is_outside = within(each.imported, package) and not within(each.module, package)
            if is_outside and each.module not in users:
                yield f"{each.place}: {each.module} imports {package}, which only {', '.join(users)} may"


def first_line(path: Path) -> str:
    """What a file says it is; empty where that is no sentence on a line of its own."""
    said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    line, *more = said.splitlines() or [""]
    return line if line.endswith((".", ":", "::")) and not (more and more[0].strip()) else ""


def unlike_a_row(root: Path, files: dict[str, Path], found: list[Import]) -> Iterator[str]:
    """Files whose first line can be no row of the map of files, and those too small to be files."""
    users: dict[str, set[str]] = {}
    for each in found:
        users.setdefault(each.imported, set()).add(each.module)
    rows: dict[tuple[Path, str], Path] = {}
    for module, path in files.items():
        place = path.relative_to(root)
        if path.name == "__init__.py":
            continue  # the package itself: the map describes it
        if not (line := first_line(path)):
            yield f"{place}: its first line must be a sentence of its own: what comes in, what goes out"
        elif (other := rows.setdefault((path.parent, line), place)) != place:
            yield f"{place}: {other} has the same first line: what is the one for, and what the other?"
        lines = len(path.read_text(encoding="utf-8").splitlines())
        is_small = lines < LEAST_LINES and module not in SMALL and RECORDS not in module.split(".")
        if is_small and len(users.get(module, ())) < 2:
            yield f"{place}: {lines} lines for one user: they belong into the file that uses them"


def files_of(root: Path, text: str) -> str:
    """The map of files in Markdown: for each package, its files and their first lines."""
    places, parts = packages(text), list[str]()
    in_package: dict[int, list[Path]] = {}
    for path in modules(root).values():
        place = path.relative_to(root)
        row = package_of(place.as_posix(), places)
        if row is not None and path.name != "__init__.py":
            in_package.setdefault(row, []).append(place)
    for row, found in sorted(in_package.items()):
        parts += [f"\n### {places[row].name}\n", "| file | what it is |", "|---|---|"]
        parts += [
            f"| `{place}` | {first_line(root / place).replace('|', chr(92) + '|')} |" for place in found
        ]
    return "\n".join(parts) + "\n"


def package_of(path: str, places: list[Package]) -> int | None:
    """The row of the map in which a file lives."""
    best = max(
        (
            (len(prefix), row)
            for row, package in enumerate(places)
            for prefix in package.paths
            if path == prefix or (prefix.endswith("/") and path.startswith(prefix))
        ),
        default=None,
    )
    return best[1] if best else None


@dataclass(frozen=True, slots=True)
class Structure:
    """The packages, and the imports between them by (row that imports, row that is imported)."""

    packages: list[Package]
    arrows: dict[tuple[int, int], list[Import]]
    problems: list[str]


def look(root: Path, text: str) -> Structure:
    """Return the structure of the code; ``problems`` are what ``--check`` prints."""
    places, files = packages(text), modules(root)
    problems = [
        f"{MAP.name}: the map names {path}, which is not there"
        for path in chain.from_iterable(package.paths for package in places)
        if not (root / path).exists()
    ]
    rows = {}
    for module, path in files.items():
        row = package_of(path.relative_to(root).as_posix(), places)
        if row is not None:
            rows[module] = row
        elif module not in PUBLIC:
            problems.append(
                f"{path.relative_to(root)}: in no package of the map in {MAP.name}: give it a row"
            )
    arrows: dict[tuple[int, int], list[Import]] = {}
    all_imports = list(imports(root, files))
    problems += circles(all_imports)
    problems += unlike_a_row(root, files, all_imports)
    problems += intrusions(all_imports)
    for found in all_imports:
        if found.module not in rows or found.imported not in rows:
            continue
        user, used = rows[found.module], rows[found.imported]
        if user == used:
            continue
        if used > user and not found.is_known:
            problems.append(
                f"{found.place}: {found.module} ({places[user].name}) imports {found.imported} "
                f"({places[used].name}), which stands below it in the map: an arrow upwards"
            )
        arrows.setdefault((user, used), []).append(found)
    return Structure(places, arrows, problems)


WIDTH, HEIGHT, GAP, STEP = 150, 44, 26, 92


def drawing(structure: Structure) -> str:
    """Draw the packages in layers as SVG. An arrow goes to each user; implied arrows are left out."""
    known = sorted(edge for edge in structure.arrows if edge[1] > edge[0])
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(structure.packages)))
    graph.add_edges_from((used, user) for user, used in sorted(structure.arrows) if used < user)
    reduced = nx.transitive_reduction(graph)
    layers = [sorted(layer) for layer in nx.topological_generations(graph)]
    widest = max(map(len, layers))
    total = widest * (WIDTH + GAP) + GAP
    where: dict[int, tuple[float, float]] = {}
    for depth, layer in enumerate(layers):
        # Below what it uses, so that arrows cross little.
        layer.sort(key=lambda row: _mean([where[used][0] for used in reduced.predecessors(row)], total / 2))
        left = (total - len(layer) * (WIDTH + GAP) + GAP) / 2
        for place, row in enumerate(layer):
            where[row] = (left + place * (WIDTH + GAP) + WIDTH / 2, 24 + depth * STEP)
    parts = [_arrow(where[used], where[user]) for used, user in sorted(reduced.edges)]
    parts += [_arrow(where[used], where[user], "known") for user, used in known]
    parts += [_box(structure.packages[row], *where[row]) for row in sorted(where)]
    height = 24 + len(layers) * STEP - STEP + HEIGHT + 24
    return "\n".join([_HEAD.format(width=total, height=height), *parts, "</svg>", ""])


def _mean(values: list[float], default: float) -> float:
    return sum(values) / len(values) if values else default


def _arrow(start: tuple[float, float], end: tuple[float, float], kind: str = "uses") -> str:
    (x1, y1), (x2, y2) = start, end
    if y2 > y1:
        y1 += HEIGHT
    else:
        y2 += HEIGHT
    if kind == "known":
        x1, x2 = x1 + 40, x2 + 40  # beside the arrow that goes the right way
    bend = (y2 - y1) / 2
    path = f"M{x1:g},{y1:g} C{x1:g},{y1 + bend:g} {x2:g},{y2 - bend:g} {x2:g},{y2:g}"
    return f'<path class="{kind}" d="{path}" marker-end="url(#head)"/>'


def _box(package: Package, x: float, y: float) -> str:
    lines = [f'<tspan class="name" x="{x:g}" y="{y + 19:g}">{escape(package.name)}</tspan>']
    if package.flow:
        flow = package.flow if len(package.flow) <= 28 else f"{package.flow[:27].rstrip()}…"
        lines.append(f'<tspan x="{x:g}" y="{y + 34:g}">{escape(flow)}</tspan>')
    title = escape(f"{', '.join(package.paths)}: {package.flow}")
    box = f'<rect x="{x - WIDTH / 2:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="6"/>'
    return f"<g><title>{title}</title>{box}<text>{''.join(lines)}</text></g>"


_HEAD: Final = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img">
<title>The packages of spaseq: each uses the packages above it</title>
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
<path d="M0,0 L8,4 L0,8 z" fill="#8a94a6"/></marker></defs>
<style>
svg {{ background: #fff }}
rect {{ fill: #f4f6fa; stroke: #5b6b86 }}
text {{ font: 9px system-ui, sans-serif; fill: #4a5568; text-anchor: middle }}
.name {{ font-size: 13px; font-weight: 600; fill: #1a2233 }}
.uses {{ fill: none; stroke: #8a94a6 }}
.known {{ fill: none; stroke: #c0392b; stroke-dasharray: 4 3 }}
</style>"""


def main(arguments: list[str]) -> int:
    if "--files" in arguments:
        print(files_of(ROOT, MAP.read_text(encoding="utf-8")))
        return 0
    structure = look(ROOT, MAP.read_text(encoding="utf-8"))
    for problem in structure.problems:
        print(problem, file=sys.stderr)
    if "--check" not in arguments:
        PICTURE.write_text(drawing(structure), encoding="utf-8")
    return 1 if structure.problems else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
