"""A diagnosis as HTML."""

import re
from html.parser import HTMLParser

import pytest
from panel_samples import DEADLOCKED, NASTY, OF_EVERY_KIND

from mpilab.diagnosis import render
from mpilab.diagnosis.model import COMPILE_WARNING, CRASH, LEAK, Diagnosis, Table
from mpilab.diagnosis.render import fragment

VOID = {"br", "img", "hr", "input", "meta", "link"}


class Reader(HTMLParser):
    """The elements of a fragment, each with its attributes and the text in it."""

    def __init__(self, html):
        super().__init__()
        self.elements, self.open = [], []
        self.feed(html)
        self.close()
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        element = {"tag": tag, "text": "", **dict(attrs)}
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop()["tag"] == tag

    def handle_data(self, data):
        for element in self.open:
            element["text"] += data

    def all(self, **wanted):
        return [e for e in self.elements if all(e.get(k) == v for k, v in wanted.items())]

    def one(self, **wanted):
        (element,) = self.all(**wanted)
        return element


def contrast(first, second):
    """Contrast of two colors #rrggbb by WCAG 2."""
    light = []
    for color in (first, second):
        parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        light.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])
    return (max(light) + 0.05) / (min(light) + 0.05)


@pytest.mark.parametrize("diagnosis", OF_EVERY_KIND, ids=lambda d: d.kind)
def test_every_kind_has_a_symbol_a_name_and_the_role_that_fits_it(diagnosis):
    html = Reader(fragment(diagnosis))
    role = "status" if diagnosis.kind in (LEAK, COMPILE_WARNING) else "alert"
    head = html.one(role=role)
    title = html.one(id=head["aria-labelledby"])
    symbol, name = render.title_of(diagnosis.kind)
    assert title["text"] == f"{symbol}\ufe0e {name} head-to-head receives"
    assert symbol in html.one(**{"aria-hidden": "true", "text": f"{symbol}\ufe0e "})["text"]
    assert html.one(tag="section")["aria-labelledby"] == title["id"]
    assert diagnosis.headline in head["text"] and diagnosis.hint in head["text"]


def test_what_is_announced_at_once_holds_no_table_and_no_log():
    said = Reader(fragment(NASTY)).one(role="alert")["text"]
    assert "line 999" not in said and "zzz" not in said


def test_the_lines_of_the_source_are_marked_by_a_sign_and_have_a_caret():
    html = Reader(fragment(DEADLOCKED))
    assert html.all(tag="pre")[0]["text"].splitlines() == [
        "▶ 14 │ MPI_Recv(buffer, count, type, partner, TAG, comm, &status);",
        "     │ ^ ranks 0 and 1 wait here",
        "▶ 16 │ MPI_Send(buffer, count, type, partner, TAG, comm);",
        "     │ ↑ never reached",
    ]


def test_the_table_has_a_caption_and_heads_with_a_scope():
    html = Reader(fragment(DEADLOCKED))
    assert html.one(tag="caption")["text"] == "What each rank does"
    assert [e["text"] for e in html.all(tag="th", scope="col")] == ["rank", "call", "bytes"]
    assert [e["text"] for e in html.all(tag="th", scope="row")] == ["0", "1", "2"]


def test_a_first_column_that_does_not_tell_rows_apart_heads_none():
    table = Table("Last calls", ("call", "tag"), (("MPI_Send", 1), ("MPI_Send", 2)))
    html = Reader(fragment(Diagnosis(CRASH, "h", tables=(table,))))
    assert html.all(tag="th", scope="row") == []
    assert len(html.all(tag="td")) == 4


def test_whatever_may_be_scrolled_takes_the_focus_and_has_a_name():
    html = Reader(fragment(NASTY))
    regions = html.all(role="region")
    assert len(regions) > 3
    assert all(r["tabindex"] == "0" and r["aria-label"] for r in regions)
    scrolled = [e for e in html.elements if "overflow" in (e.get("style") or "")]
    assert scrolled == regions


def test_nothing_that_a_program_wrote_becomes_markup():
    html = Reader(fragment(NASTY, 'x"><script>alert(1)</script>', title="<script>"))
    tags = {element["tag"] for element in html.elements}
    assert not tags & {"script", "img", "u", "h1", "i"}
    assert len(html.all(tag="style")) == len(html.all(tag="section")) == 1
    assert not [k for e in html.elements for k in e if k.startswith("on")]
    assert "<script>alert('owned')</script>" in html.one(role="alert")["text"]


def test_control_characters_and_colors_are_gone_and_the_direction_is_not_turned():
    shown = fragment(NASTY)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", shown)
    assert "[31m" not in shown and "http://x" not in shown


def test_the_size_is_bounded_and_what_is_left_out_is_said():
    shown = fragment(NASTY)
    assert len(shown) < 250_000
    html = Reader(shown)
    assert len(html.all(tag="tr")) == 1 + 64
    assert "… and 36 more rows" in shown
    assert "Printed by rank 1 (the last 60 of 1000 lines):" in shown
    assert "(the last 60 of 5000 lines):" in shown
    assert "more ranks printed." in shown


def test_the_log_is_linked_where_it_was_kept_and_only_there():
    diagnosis = Diagnosis(CRASH, "h", log="noise")
    (link,) = Reader(fragment(diagnosis, "mpilab-logs/0001-my crash.txt")).all(tag="a")
    assert link["href"] == "mpilab-logs/0001-my%20crash.txt"
    assert Reader(fragment(diagnosis)).all(tag="a") == []
    assert Reader(fragment(diagnosis)).one(tag="summary")["text"] == "What Open MPI said"


def test_a_diagnosis_of_a_headline_alone_has_no_empty_parts():
    html = Reader(fragment(Diagnosis(CRASH, "It crashed.")))
    tags = [element["tag"] for element in html.elements]
    assert tags == ["style", "section", "div", "div", "span", "span", "span", "p"]


@pytest.mark.parametrize("colors", [render.ALARM, render.MILD_CLASSES])
def test_the_badge_is_legible_by_its_own_colors(colors):
    assert contrast(*colors) >= 4.5


def test_two_panels_of_one_page_have_titles_of_their_own():
    first, second = (Reader(fragment(DEADLOCKED)).one(tag="section") for _ in range(2))
    assert first["aria-labelledby"] != second["aria-labelledby"]


def test_the_style_sheet_concerns_the_panel_only():
    css = (render.Path(render.__file__).with_name("panel.css")).read_text()
    selectors = [s.strip() for block in re.findall(r"([^{}]+)\{", css) for s in block.split(",")]
    assert selectors and all(s.startswith(".mpilab-") for s in selectors)
