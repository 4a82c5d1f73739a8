"""A feedback page shows the student what went wrong, and runs nothing of theirs."""

import base64
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from mpilab.diagnosis.model import DEADLOCK, Diagnosis, Place, Table
from mpilab.diagnosis.render import fragment
from mpilab.grading.feedback import render
from mpilab.grading.submission import printed
from mpilab.judging.verdict import FAIL, ExerciseVerdict, ItemVerdict, SubmissionVerdict
from mpilab.util.text import plain

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&{{ 7*7 }}"
VOID = {"meta", "img", "br", "link"}
BLOCKED = [
    {"rank": 0, "call": "MPI_Recv", "peer": 1, "_seed": 31337},
    {"rank": 1, "call": "MPI_Send", "peer": 2},
]


class Page(HTMLParser):
    """The elements of a page as (tag, attributes), its text, and whether its tags are balanced."""

    def __init__(self, html):
        super().__init__()
        self.elements, self.open, self.balanced, self.text = [], [], True, ""
        self.feed(html)
        self.balanced &= not self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        self.balanced &= bool(self.open) and self.open.pop() == tag

    def handle_data(self, data):
        if not {"style", "head"} & set(self.open):
            self.text += data

    def tags(self):
        return [tag for tag, _ in self.elements]

    def attributes(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]


def item(outcome="fail", reason="", title="Any P", name="any", points=8, **evidence):
    return ItemVerdict(name, title, points, outcome, reason, evidence)


def graded(*items, student="anna", reason="", title="Pairwise"):
    exercises = (ExerciseVerdict("pairwise", title, items),) if items else ()
    return SubmissionVerdict(student, "02-allgather", exercises, reason)


def test_whatever_a_student_controls_is_shown_as_text():
    notebook = new_notebook(
        cells=[
            new_code_cell(
                outputs=[
                    new_output("stream", text=EVIL),
                    new_output("execute_result", data={"text/plain": EVIL, "text/html": EVIL}),
                    new_output("error", ename=EVIL, evalue=EVIL, traceback=[EVIL]),
                ],
                metadata={"nbgrader": {"grade_id": EVIL, "solution": True}},
            )
        ]
    )
    failed = item(
        reason=EVIL,
        title=EVIL,
        source={"line": 1, "text": EVIL},
        got=EVIL,
        table=[{EVIL: EVIL}],
        reproduce=EVIL,
        svg="<svg xmlns='http://www.w3.org/2000/svg'/>",
        svg_alt=EVIL,
        **{EVIL: EVIL},
    )
    verdict = graded(failed, student=EVIL, title=EVIL)
    page = Page(render(verdict, notebook=notebook, answers={"pairwise": EVIL}, lab_title=EVIL))
    assert page.balanced
    assert "script" not in page.tags() and len(page.attributes("img")) == 1
    assert not [name for _, attrs in page.elements for name in attrs if name.startswith("on")]
    assert page.text.count("<script>alert(1)</script>") >= 10
    assert "{{ 7*7 }}" in page.text and "49" not in page.text


def test_the_page_forbids_scripts_and_needs_nothing_from_outside():
    html = render(graded(item(svg="<svg/>", reason="no")))
    page = Page(html)
    (policy,) = [m["content"] for m in page.attributes("meta") if "http-equiv" in m]
    assert "default-src 'none'; style-src 'unsafe-inline'; img-src data:" in policy
    assert "http://" not in html and "https://" not in html
    assert html.index("Content-Security-Policy") < html.index("<style")


def test_the_head_gives_points_and_status_and_what_was_missed_comes_first():
    page = Page(
        render(
            graded(
                item("pass", title="Powers of two"),
                item("manual", title="Your explanation"),
                item("fail", "rank 1 waits", title="Any P", points=4.5),
            )
        )
    )
    assert "0 / 20.5 so far" in page.text and "1 of 3 items" in page.text
    assert "awaiting manual grading" in page.text
    order = [page.text.index(title) for title in ("Any P", "Your explanation", "Powers of two")]
    assert order == sorted(order)
    for words in ("✗ not yet", "✓ passed", "… graded manually", "0 / 4.5", "– / 8"):
        assert words in page.text


def test_an_ungradable_submission_is_told_that_it_is_not_a_zero():
    page = Page(render(graded(reason="not valid JSON (line 3, column 9)")))
    assert "is not a zero" in page.text and "line 3, column 9" in page.text
    assert Page(render(graded(item("ungradable", "disk full")))).text.count("not a zero") == 1
    assert "not a zero" not in Page(render(graded(item("pass")))).text


def test_the_evidence_names_the_case_the_blocked_calls_and_what_to_try():
    page = Page(
        render(
            graded(
                item(
                    reason="deadlock",
                    ranks=3,
                    got=[1, 2],
                    in_place=True,
                    nested={"a": 1, "_seed": 31337},
                    table=BLOCKED,
                    reproduce="check('pairwise', ranks=3)",
                    messages=[{"from": 0, "to": 1}],
                    _seed=31337,
                )
            )
        )
    )
    for words in ("Ranks3", "What arrived1, 2", "In placeyes", "Nesteda: 1", "RankCallPeer"):
        assert words in "".join(page.text.split("\n"))
    assert "check('pairwise', ranks=3)" in page.text and "MPI_Send" in page.text
    assert "Messages" in page.text and "31337" not in page.text and "seed" not in page.text.lower()


def test_a_line_of_the_answer_is_marked_in_the_excerpt_and_in_the_whole_answer():
    answer = "\n".join(f"line {n}" for n in range(1, 31))
    verdict = graded(item(reason="no", source={"line": 12, "text": "line 12"}))
    page = Page(render(verdict, answers={"pairwise": answer}))
    assert page.attributes("mark") == [{"class": "line", "data-n": "▶ 12"}] * 2
    excerpt = [attrs["data-n"] for attrs in page.attributes("span") if "data-n" in attrs][:10]
    assert excerpt == ["7", "8", "9", "10", "11", "13", "14", "15", "16", "17"]


def test_a_line_that_is_not_in_the_answer_is_quoted_from_the_evidence():
    for answers in (None, {"pairwise": "short"}):
        verdict = graded(item(reason="no", source={"line": 12, "text": "the line"}))
        page = Page(render(verdict, answers=answers))
        assert "the line" in page.text
        assert {"class": "line", "data-n": "▶ 12"} in page.attributes("mark")


def test_our_drawings_are_images_with_a_text_alternative():
    svg = "<svg xmlns='http://www.w3.org/2000/svg'><text>π</text></svg>"
    view = {"svg": svg, "alt": "Three rounds", "caption": "Your messages"}
    verdict = graded(item(reason="rank 1 waits", svg=svg))
    page = Page(render(verdict, recording_views={"pairwise": [view]}))
    first, second = page.attributes("img")
    assert first["alt"].endswith("rank 1 waits") and second["alt"] == "Three rounds"
    for image in (first, second):
        data = image["src"].removeprefix("data:image/svg+xml;base64,")
        assert base64.b64decode(data).decode() == svg
    assert "Your messages" in page.text


def test_a_picture_that_could_not_be_drawn_says_why():
    page = Page(render(graded(item(reason="rank 1 waits", svg_alt="Not drawn: 17 ranks."))))
    assert page.attributes("img") == [] and "Not drawn: 17 ranks." in page.text


def test_the_page_can_be_read_by_a_screen_reader():
    notebook = new_notebook(cells=[new_code_cell(outputs=[new_output("stream", text="hi")])])
    page = Page(render(graded(item(reason="x", table=BLOCKED)), notebook=notebook))
    levels = [int(tag[1]) for tag in page.tags() if tag in ("h1", "h2", "h3")]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in zip(levels, levels[1:], strict=False))
    assert page.attributes("html") == [{"lang": "en"}]
    assert all(attrs.get("scope") in ("row", "col") for attrs in page.attributes("th"))


def outputs_of(*outputs, tags=()):
    cell = new_code_cell(outputs=list(outputs), metadata={"tags": list(tags)})
    return printed(new_notebook(cells=[new_markdown_cell("x"), cell]))


def test_output_is_cut_at_60_lines_or_4000_characters_and_says_so():
    (lines,) = outputs_of(new_output("stream", text="x\n" * 100))
    assert lines["text"].count("x") == 60 and "100 lines" in lines["note"]
    (long,) = outputs_of(new_output("stream", text="y" * 5000))
    assert len(long["text"]) == 4000 and "1,000 of 5,000 characters" in long["note"]
    (short,) = outputs_of(new_output("stream", text="z\n" * 60))
    assert short["note"] == "" and short["where"] == "Cell 2"


def test_a_notebook_that_prints_without_end_does_not_make_an_endless_page():
    shown = outputs_of(*[new_output("stream", text="y" * 4000)] * 500)
    assert sum(len(each["text"]) for each in shown) == 200_000
    assert shown[-1]["note"] == "The rest is omitted here."


def test_a_traceback_is_shown_without_its_colors():
    (shown,) = outputs_of(
        new_output("error", ename="E", evalue="v", traceback=["\x1b[0;31mE\x1b[0m", "v"])
    )
    assert shown["kind"] == "error" and shown["text"] == "E\nv"


def test_pictures_are_not_shown_and_the_graders_own_cell_is_not_either():
    assert outputs_of(new_output("display_data", data={"text/html": "<b>", "image/png": "x"})) == []
    assert outputs_of(new_output("stream", text="seed 4"), tags=["injected-parameters"]) == []


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("\x1b[1;31mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x07", "red link"),
        (" 10%|#\r100%|##########\nnext", "100%|##########\nnext"),
        ("dos\r\nline\r", "dos\nline"),
        ("a\0b\x08\x7f\ud800", "a\ufffdb\ufffd\ufffd\ufffd"),
        ("tab\tstays", "tab\tstays"),
    ],
)
def test_terminal_codes_and_control_characters_do_not_reach_the_page(raw, text):
    assert plain(raw) == text


def test_the_page_can_always_be_written_as_utf8():
    page = render(graded(item(reason="\ud800", got="\udfff"), student="\ud800"))
    assert "\ufffd" in page and page.encode("utf-8")


DEADLOCKED = Diagnosis(
    DEADLOCK,
    "ranks 0 and 1 wait for each other",
    pattern="head-to-head receives",
    hint="Let one of them send first.",
    places=(Place(2, "    MPI_Recv(a);", "ranks 0 and 1 wait here", 5),),
    cycle=(0, 1),
    tables=(Table("What each rank is doing", ("rank", "call"), ((0, "MPI_Recv"), (1, EVIL))),),
    notes=("It hangs with 2 ranks, too.",),
    printed=((0, EVIL),),
)


def test_a_diagnosis_is_shown_as_in_the_notebook_with_its_pattern_and_hint():
    failed = replace(item(reason="deadlock", ranks=2), diagnoses=(DEADLOCKED, DEADLOCKED))
    html = render(graded(failed), answers={"pairwise": "a\n    MPI_Recv(a);\nb\n"})
    page = Page(html)
    assert page.balanced and "script" not in page.tags()
    for words in (
        "✗\ufe0e Deadlock head-to-head receives",
        "What to try: Let one of them send first.",
        "▶ 2 │ MPI_Recv(a);",
        "│ ^ ranks 0 and 1 wait here",
        "Cycle of waiting: 0 → 1 → 0 (rank 0 waits for rank 1, which waits for rank 0)",
        "It hangs with 2 ranks, too.",
        "Printed by rank 0",
        EVIL,
    ):
        assert words in page.text
        assert words in Page(fragment(DEADLOCKED)).text
    assert {"class": "line", "data-n": "▶ 2"} in page.attributes("mark")
    names = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    assert len(names) == len(set(names))
    assert not [attrs for _, attrs in page.elements if attrs.get("role") == "alert"]
    assert html.count(".mpilab-panel {") == 1


def test_the_same_mistake_in_several_items_is_explained_once():
    def item(name, line):
        hung = Diagnosis(
            DEADLOCK,
            "It hangs.",
            hint="Add a wait.",
            places=(Place(line),),
            tables=(Table("last calls", ("call",), (("MPI_Irecv",),)),),
        )
        evidence = {"ranks": 4, "reproduce": f"run({name})"}
        return ItemVerdict(name, name, 1, FAIL, "It hangs.", evidence, diagnoses=(hung,))

    items = (item("one", 3), item("two", 3), item("three", 4))
    exercise = ExerciseVerdict("x", "X", items)
    page = render(SubmissionVerdict("ada", "02", (exercise,)), answers={"x": "a\nb\nc\nd\n"})
    assert page.count("Add a wait.") == 2
    assert page.count("The same mistake as above.") == 1
    assert page.count("MPI_Irecv") == 2
    assert all(f"run({name})" in page for name in ("one", "two", "three"))
