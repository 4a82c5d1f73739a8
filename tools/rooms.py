"""Draw the package's rooms and their imports into docs/architecture.md.

    python tools/rooms.py        update the picture and the table of that page

A room is a package below mpilab/. The picture is Mermaid, which GitHub and JupyterLab draw. It has
an arrow from each room to those that it imports, except for arrows implied by a longer path.
pyproject.toml defines which room may import which; `make lint` enforces it.
"""

import ast
import re
import tomllib
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "architecture.md"
# All rooms import these: no arrows lead to them.
GROUND = ("errors", "util")


def layers() -> list[str]:
    """The rooms from the top down, as import-linter's contract has them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = (
        contract
        for contract in settings["tool"]["importlinter"]["contracts"]
        if contract["type"] == "layers"
    )
    return contract["layers"]


def imports() -> set[tuple[str, str]]:
    """(room, room that it imports): all pairs, imports inside functions included."""
    graph = grimp.build_graph("mpilab", cache_dir=None)
    names = {module: (module.split(".") + [""])[1] for module in graph.modules}
    return _imported_late() | {
        (names[module], names[other])
        for module in graph.modules
        for other in graph.find_modules_directly_imported_by(module)
        if names[module] and names[other] and names[module] != names[other]
    }


def _imported_late() -> set[tuple[str, str]]:
    """The pairs of `cli`, whose commands import what they run when it is used (cli/common.py)."""
    trees = [ast.parse(file.read_text("utf-8")) for file in (ROOT / "mpilab/cli").glob("*.py")]
    return {
        ("cli", node.attr)
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "mpilab"
    }


def picture(edges: set[tuple[str, str]]) -> str:
    """Mermaid of the rooms: an arrow from each room to those that it imports."""
    drawn = [room for room in reversed(layers()) if room not in (*GROUND, "__main__")]
    ways = {room: {other for one, other in edges if one == room} & set(drawn) for room in drawn}
    lines = ["```mermaid", "flowchart BT"]
    for room in drawn:
        lines += [f"    {room} --> {other}" for other in sorted(_needed(room, ways))]
    return "\n".join([*lines, "```"])


def _needed(room: str, ways: dict[str, set[str]]) -> set[str]:
    """The rooms that `room` imports and to which none of these leads."""
    beyond, todo = set(), [further for other in ways[room] for further in ways[other]]
    while todo:
        other = todo.pop()
        if other not in beyond:
            beyond.add(other)
            todo += ways[other]
    return ways[room] - beyond


def table() -> str:
    """A Markdown table of the rooms, from the top down, with the beginning of their docstrings."""
    lines = ["| room | what it is for | files |", "|---|---|---|"]
    for room in layers():
        folder = ROOT / "mpilab" / room
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
