"""Draw the rooms of the package, and which of them import which, into docs/architecture.md.

    python tools/rooms.py        bring the picture and the table of that page up to date

A room is a package below mpilab/. The picture is Mermaid, which GitHub and JupyterLab draw. It has
an arrow from each room to those that it imports, but for arrows that a longer way says as well.
"""

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "mpilab"
PAGE = ROOT / "docs" / "architecture.md"

# From the ground up: a room imports rooms that stand before it, and no others.
ORDER = (
    "errors",
    "util",
    "kernels",
    "hosts",
    "cases",
    "trace",
    "cluster",
    "runners",
    "diagnosis",
    "algorithms",
    "models",
    "measure",
    "mpiio",
    "tuning",
    "datasets",
    "plots",
    "remapping",
    "judging",
    "grading",
    "notebook",
    "course",
    "bench",
    "doctor",
    "cli",
    "__main__",
)


def imports() -> dict[tuple[str, str], list[str]]:
    """{(room, room that it imports): the files that do}, with imports inside of functions."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        inside = path.relative_to(PACKAGE)
        room = inside.parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "mpilab":
                names = [f"mpilab.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            for name in names:
                other = (name.split(".") + [""])[1] if name.startswith("mpilab.") else room
                if other != room and other in ORDER:
                    found.setdefault((room, other), []).append(str(inside))
    return found


def against_the_order(edges: dict[tuple[str, str], list[str]]) -> list[str]:
    """A line for each pair of rooms whose imports do not point to the ground."""
    place = {room: index for index, room in enumerate(ORDER)}
    return [
        f"{room} imports {other}, which stands above it: {', '.join(dict.fromkeys(files))}"
        for (room, other), files in edges.items()
        if room in place and place[room] < place[other]
    ]


def picture(edges: dict[tuple[str, str], list[str]]) -> str:
    """Mermaid of the rooms; what all import (errors, util) has no arrows."""
    ground = ("errors", "util")
    ways = {room: set() for room in ORDER}
    for room, other in edges:
        if room in ways and other not in ground:
            ways[room].add(other)
    lines = ["```mermaid", "flowchart BT"]
    for room in ORDER:
        if room in ground or room == "__main__":
            continue
        lines += [f"    {room} --> {other}" for other in sorted(_needed(room, ways))]
    return "\n".join([*lines, "```"])


def _needed(room, ways):
    """The rooms that `room` imports and that none of these leads to."""
    beyond, todo = set(), [further for other in ways[room] for further in ways[other]]
    while todo:
        other = todo.pop()
        if other not in beyond:
            beyond.add(other)
            todo += ways[other]
    return ways[room] - beyond


def table() -> str:
    """A Markdown table of the rooms, from the top down, with what their docstrings begin with."""
    lines = ["| room | what it is for | files |", "|---|---|---|"]
    for room in reversed(ORDER):
        folder = PACKAGE / room
        if folder.is_dir():
            tree = ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))
            words = " ".join((ast.get_docstring(tree) or "").partition("\n\n")[0].split())
            count = len(list(folder.rglob("*.py")))
            lines.append(f"| [`{room}`](../mpilab/{room}) | {words} | {count} |")
    return "\n".join(lines)


def filled(page: str) -> str:
    """`page` with the picture and the table between their marks."""
    for name, content in (("picture", picture(imports())), ("rooms", table())):
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        page = pattern.sub(lambda _, text=f"{begin}\n{content}\n{end}": text, page)
    return page


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    sys.exit("\n".join(against_the_order(imports())) or None)
