"""Students' Markdown is shown with its formulas, and none of it becomes a tag."""

import re
import time

import pytest

from mpilab.course.prose import LONGEST, html_of, mathml


def words(html):
    return re.sub(r"<[^>]*>", "", html)


@pytest.mark.parametrize(
    ("formula", "shown", "tags"),
    [
        (r"\lceil \log_2 P \rceil \alpha", "⌈log2P⌉α", {"mrow", "mo", "msub", "mi", "mn"}),
        (r"\frac{P-1}{P} m\beta", "P-1Pmβ", {"mrow", "mfrac", "mi", "mo", "mn"}),
        (
            r"\sum_{i=0}^{P-1} m_i^2",
            "∑i=0P-1mi2",
            {"munderover", "msubsup", "mrow", "mo", "mi", "mn"},
        ),
        (r"\sqrt P \times \sqrt[3]{x}", "P×x3", {"mrow", "msqrt", "mroot", "mo", "mi", "mn"}),
        (
            r"\left( a \right) \text{ if } x < 0{,}5",
            "(a) if x&lt;0,5",
            {"mrow", "mo", "mi", "mn", "mtext"},
        ),
        (r"\min(a, b) \le 1.5", "min(a,b)≤1.5", {"mrow", "mo", "mi", "mn"}),
    ],
)
def test_a_formula_becomes_mathml(formula, shown, tags):
    made = mathml(formula)
    assert words(made) == shown
    assert set(re.findall(r"<(\w+)", made)) == tags | {"math"}


@pytest.mark.parametrize(
    "formula",
    [
        r"\unknown",
        "{",
        "}",
        "a^",
        "x^2^3",
        r"\frac{a}",
        r"\sqrt[3",
        "{" * 3000,
        r"\sqrt" * 3000 + " x",
        r"\text{a",
    ],
)
def test_what_is_no_formula_is_shown_as_it_was_written(formula):
    assert mathml(formula) == f"<code>{formula}</code>"


def test_markdown_with_formulas_and_prices():
    made = html_of("It **costs** $P - 1$ rounds, `a*b`, or $5 and $6.\n\n$$\nm_i\n$$\n\n- a\n- b\n")
    assert "<strong>costs</strong>" in made and "<code>a*b</code>" in made
    assert made.count("<math") == 2 and 'display="block"' in made and "$5 and $6" in made
    assert made.count("<li>") == 2


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "a <b onclick=x>b</b> &lt;i&gt;",
        "[click](javascript:alert(1)) [x](http://x) <http://x>",
        "![pixel](http://example.org/pixel.png)",
        "[a]\n\n[a]: javascript:alert(1)",
        "$<script>alert(1)</script>$ $\\text{<b>}$ $\\unknown<script>$",
        "$$<style>*{}</style>$$",
        "```<script>\n</code></pre><script>\n```",
    ],
)
def test_no_tag_of_a_student_is_one_in_the_page(text):
    made = html_of(text)
    known = "p code pre span div math m[a-z]+ section eqn".split()
    assert all(
        re.fullmatch("|".join(known), tag) for tag in re.findall(r"<\s*/?\s*([^\s>]+)", made)
    ), made
    attributes = set(re.findall(r"\s(\w+)=", "".join(re.findall(r"<[^>]*>", made))))
    assert attributes <= {"class", "display", "width"}


def test_a_hostile_text_takes_no_longer_than_another():
    for part in ("[", "*_", "`", "$a", "> ", "- ", "|a", "![", "$$\n", "\\{"):
        began = time.process_time()
        html_of(part * (LONGEST // len(part)))
        assert time.process_time() - began < 5, part
    assert html_of("<" * (LONGEST + 1)).startswith("<pre>&lt;")
