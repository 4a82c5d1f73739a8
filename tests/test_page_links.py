"""Links between pages lead to existing files and headings; the glossary is in order."""

import json
import re
import shutil
from pathlib import Path
from urllib.parse import unquote

import pytest

from mpilab.course.handout import write_help

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "labs").glob("*.ipynb")),
    *(path for folder in ("hostfiles", "slurm", "data") for path in (ROOT / folder).glob("*.md")),
]
LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^)\s]+)\)")
PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")
IMAGES = ROOT / "docs" / "images"
MOST_BYTES = 150_000  # of a picture
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
TERM = re.compile(r"^\*\*([^*]+)\*\*", re.MULTILINE)


def text_of(page):
    """The Markdown of a page or notebook, without fenced code."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        text = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(page):
    """What a link to a heading of this page may name: GitHub's form, and JupyterLab's."""
    found = set()
    for heading in re.findall(r"^#+ +(.+?) *$", text_of(page), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        found.add(re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-"))
        found.add(plain.replace(" ", "-"))
    return found | set(re.findall(r'<a (?:id|name)="([^"]+)"', text_of(page)))


def links(page):
    """(target page, heading or '') of each relative link."""
    for link in LINK.findall(text_of(page)):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, heading = unquote(link).partition("#")
        if page.suffix == ".ipynb" and name.startswith("help/"):
            yield ROOT / "docs" / name.removeprefix("help/"), heading
        else:
            yield (page.parent / name).resolve() if name else page, heading


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_a_page_and_a_heading(page):
    lost = []
    for target, heading in links(page):
        if not target.exists():
            lost.append(str(target))
        elif heading and heading not in anchors(target):
            lost.append(f"{target.name}#{heading}")
    assert lost == []


@pytest.fixture(scope="module")
def helped(tmp_path_factory):
    """A folder with all labs and their help pages, and nothing around it."""
    labs = tmp_path_factory.mktemp("course") / "labs"
    labs.mkdir()
    for notebook in (ROOT / "labs").glob("*.ipynb"):
        shutil.copy(notebook, labs)
    write_help(labs, ROOT / "docs")
    return labs


def test_every_picture_exists_is_small_is_shown_and_has_a_text_instead():
    shown = [
        (page.name, alt, (page.parent / path).resolve())
        for page in PAGES
        for alt, path in PICTURE.findall(text_of(page))
    ]
    assert [(page, path) for page, alt, path in shown if len(alt.split()) < 5] == []
    assert {path for *_, path in shown} == set(IMAGES.iterdir())  # make screenshots
    for path in IMAGES.iterdir():
        assert path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size < MOST_BYTES


def test_a_student_with_nothing_but_the_labs_reaches_every_page_that_they_link_to(helped):
    lost = [
        f"{page.name}: {link}"
        for page in (*helped.glob("*.ipynb"), *helped.glob("help/*.md"))
        for link in LINK.findall(text_of(page))
        if not re.match(r"[a-z]+:|#", link)
        and not (page.parent / unquote(link).partition("#")[0]).is_file()
    ]
    assert lost == []


def test_every_lab_and_the_start_page_link_to_the_glossary(helped):
    pages = sorted(helped.glob("*.ipynb"))
    assert len(pages) == 8
    for page in pages:
        assert "help/glossary.md" in LINK.findall(text_of(page)), page.name
    text = (helped / "help" / "glossary.md").read_text(encoding="utf-8")
    assert TERM.findall(text) == TERM.findall(GLOSSARY)
    assert "See [file-access.md](file-access.md)" in text.replace("\n", " ")
    assert "See `docs/rubrics.md`" in text and "`hostfiles/README.md`" in text


def test_links_with_headings_are_among_those_tried():
    assert any(heading for page in PAGES for _, heading in links(page))


def test_the_glossary_has_each_term_once_in_order():
    terms = TERM.findall(GLOSSARY)
    assert len(terms) > 40
    assert terms == sorted(set(terms), key=_spelled_out)


def _spelled_out(term):
    return term.replace("α", "alpha").replace("β", "beta").casefold()


def test_italics_in_the_glossary_are_entries_of_it():
    terms = {re.sub(r"\W+", " ", term.lower()) for term in TERM.findall(GLOSSARY)}
    body = GLOSSARY.partition("**")[2]
    for word in re.findall(r"(?<!\*)\*([^*\n]+)\*(?!\*)", body):
        name = re.sub(r"\W+", " ", word.lower())
        assert {name, name.removesuffix("s"), name.removesuffix("es")} & terms, word


def test_the_glossary_is_found_from_the_readme():
    assert (ROOT / "docs" / "glossary.md", "") in list(links(ROOT / "README.md"))
