"""The rooms of the package: imports point one way, and docs/architecture.md shows them."""

import rooms


def test_every_room_imports_only_rooms_that_stand_before_it():
    assert rooms.against_the_order(rooms.imports()) == []


def test_every_package_has_its_place_in_the_order():
    known = {path.stem for path in rooms.PACKAGE.iterdir() if path.suffix in ("", ".py")}
    assert known - {"__init__", "__pycache__"} == set(rooms.ORDER)


def test_an_import_against_the_order_is_told_with_its_file():
    edges = {("trace", "plots"): ["trace/recording.py"], ("plots", "trace"): ["plots/matrix.py"]}
    (line,) = rooms.against_the_order(edges)
    assert line == "trace imports plots, which stands above it: trace/recording.py"


def test_the_page_shows_the_rooms_as_they_are():
    page = rooms.PAGE.read_text(encoding="utf-8")
    assert rooms.filled(page) == page, "run: python tools/rooms.py"
