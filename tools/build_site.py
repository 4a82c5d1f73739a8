"""Make the site in out/site: the docs, and all labs as executed pages; `make site`.

    python tools/build_site.py [LAB ...] [--out DIR] [--work DIR]

A lab is executed blank, as students get it, in a handout: no page holds an answer. An executed
notebook is kept in build/site/ until the lab or the kit changes. Sphinx makes the pages, with the
settings in site/. Its warnings are errors, and so are links that lead nowhere, and resources that a
browser would fetch from the network.
"""

import argparse
import hashlib
import html
import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import jinja2
import nbformat
import papermill
from tqdm import tqdm

from mpilab.cases.case import Case
from mpilab.course.handout import HELP, START, handout
from mpilab.diagnosis import render
from mpilab.diagnosis.model import DEADLOCK
from mpilab.errors import InputError, MpilabError
from mpilab.kernels import build, openmpi
from mpilab.measure import crossover
from mpilab.notebook.session import KernelRun
from mpilab.plots import distances, style
from mpilab.runners import mpirun
from mpilab.util import door
from mpilab.util.files import atomic_write
from mpilab.util.kit import ROOT

SITE = ROOT / "site"
IMAGES = ROOT / "docs" / "images"  # the only ones of the pages
# What an executed lab depends on, besides the lab.
EXECUTED_WITH = ("mpilab", "src_c", "data", "hostfiles", "labs/checks", "constraints.txt")
PLOT, WIDGET = "application/vnd.plotly.v1+json", "application/vnd.jupyter.widget-view+json"
# The pages besides the labs, in the order of the sidebar.
PARTS = {
    "For students": " ".join(HELP),
    "For instructors": (
        "instructors marking reporting rubrics jupyterhub deploy threat-model trust mutants"
    ),
    "About the kit": "architecture performance sources",
}
OTHERS = ("README", "CONTRIBUTING", "CHANGELOG")
READMES = ("data", "hostfiles", "slurm")


def main():
    """Make the site, and print where it is."""
    parser = argparse.ArgumentParser(prog="build_site", description=__doc__.split("\n")[0])
    parser.add_argument("labs", nargs="*", metavar="LAB", help="default: all labs")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "site", metavar="DIR")
    parser.add_argument(
        "--work",
        type=Path,
        default=ROOT / "build" / "site",
        metavar="DIR",
        help="where executed labs are kept (default: build/site)",
    )
    options = parser.parse_args()
    out, work = options.out.absolute(), options.work.absolute()
    known = sorted(path.stem for path in (ROOT / "labs" / "source").glob("*.py"))
    labs = options.labs or known
    for lab in labs:
        if lab not in known:
            raise InputError(f"lab {lab!r}: no such lab; write one of {', '.join(known)}")
    source = lay_out(executed(labs, work), work)
    run_sphinx(source, out)
    lost = broken(out)
    if lost:
        raise MpilabError(
            f"{out}: {len(lost)} broken links; correct them in the sources of the pages:\n"
            + "\n".join(lost)
        )
    print(f"site: {out / 'index.html'}")


# The labs, executed.


def executed(labs, work):
    """{name: executed notebook} of START and `labs`, kept in the folder `work`, or executed now."""
    kit = fingerprint()
    names = [Path(START).stem, *labs]
    kept = {}
    for name in names:
        text = (ROOT / "labs" / f"{name}.ipynb").read_bytes()
        digest = hashlib.sha256(kit + " ".join(labs).encode() * (name == names[0]) + text)
        kept[name] = work / "executed" / f"{name}-{digest.hexdigest()[:16]}.ipynb"
    missing = [name for name in names if not kept[name].exists()]
    if missing:
        course = course_of(labs, work / "course")
        for name in tqdm(missing, desc="site: executing labs", unit="lab"):
            for old in kept[name].parent.glob(f"{name}-*.ipynb"):
                old.unlink()
            execute(course / "labs" / f"{name}.ipynb", kept[name], course)
        shutil.rmtree(course)
    return {name: nbformat.read(path, as_version=4) for name, path in kept.items()}


def fingerprint():
    """A digest of the files in EXECUTED_WITH."""
    found = hashlib.sha256()
    for name in EXECUTED_WITH:
        folder = ROOT / name
        for path in sorted(folder.rglob("*")) if folder.is_dir() else [folder]:
            if path.is_file() and "__pycache__" not in path.parts:
                found.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return found.digest()


def course_of(labs, course):
    """The folder `course`, made a handout of `labs`, with its C code compiled."""
    shutil.rmtree(course, ignore_errors=True)
    handout(course, labs)
    made = ["make", "-s", "-j2", "-C", course / "src_c", f"MPICC={openmpi.tool('mpicc')}"]
    subprocess.run(made, check=True)
    return course


def execute(notebook, target, course):
    """Execute `notebook` of the handout `course`, with its own copy of the kit, into `target`."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(".part.ipynb")
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(course)  # the kernel's, before the kit that runs this
    try:
        papermill.execute_notebook(
            notebook,
            part,
            cwd=notebook.parent,
            progress_bar=False,
            request_save_on_cell_execute=False,
        )
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before
    text = part.read_text(encoding="utf-8").replace(str(course), "mpi-labs")
    atomic_write(target, text)
    part.unlink()


# From notebooks and Markdown to the pages' sources.


def lay_out(notebooks, work):
    """Write the sources of all pages below `work` for Sphinx, under their paths in the kit; the
    folder."""
    source = work / "source"
    shutil.rmtree(source, ignore_errors=True)
    docs = {f"docs/{name}.md" for names in PARTS.values() for name in names.split()}
    pages = docs | {f"{name}.md" for name in OTHERS} | {f"{name}/README.md" for name in READMES}
    reachable = pages | {f"labs/{name}.ipynb" for name in notebooks}
    for page in pages:
        text = (ROOT / page).read_text(encoding="utf-8")
        atomic_write(source / page, relinked(text, page, reachable))
    shutil.copytree(IMAGES, source / "docs" / IMAGES.name)
    for name, notebook in notebooks.items():
        page = f"labs/{name}.ipynb"
        for cell in notebook.cells:
            publish(cell, page, reachable)
        notebook.metadata = {"kernelspec": notebook.metadata["kernelspec"]}
        notebook.metadata["language_info"] = {"name": "python", "pygments_lexer": "ipython3"}
        atomic_write(source / page, nbformat.writes(notebook) + "\n")
    parts = {
        caption: [f"docs/{name}" for name in names.split()] for caption, names in PARTS.items()
    }
    parts["About the kit"] += [*OTHERS, *(f"{name}/README" for name in READMES)]
    figure = crossovers()
    template = jinja2.Template((SITE / "index.md.j2").read_text(encoding="utf-8"))
    index = template.render(
        labs=[f"{title_of(name, notebook)} <labs/{name}>" for name, notebook in notebooks.items()],
        parts=parts,
        deadlock=deadlock(work),
        crossover=figure_html(json.loads(figure.to_json()), style.alt(figure)),
    )
    atomic_write(source / "index.md", index)
    shutil.copy(SITE / "conf.py", source)
    return source


def title_of(name, notebook):
    """The title of a lab in the sidebar, with its number."""
    number, _, rest = name.partition("-")
    title = notebook.cells[0].source.split("\n")[0].removeprefix("# ")
    return f"{number} {title}" if rest else title


_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^):#\s]*)(#[^)\s]*)?\)")


def relinked(text, page, reachable):
    """Markdown of `page`, whose links lead to pages of the site; other files become their paths."""

    def link(match):
        words, path, heading = match[1], match[2], match[3] or ""
        # JupyterLab's form of an anchor, and Sphinx's.
        heading = heading.lower()
        if not path:
            return f"[{words}]({heading})"
        if page.startswith("labs/") and path.startswith("help/"):
            path = "../docs/" + path.removeprefix("help/")
        target = os.path.normpath(Path(page).parent / path)
        if target in reachable:
            return f"[{words}]({path}{heading})"
        if "`" in words:
            return words
        return f"`{target}`" if words in target else f"{words} (`{target}`)"

    # Code is left alone; no program draws Mermaid offline.
    text = text.replace("```mermaid", "```text")
    parts = re.split(r"(^```.*?^```$)", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if i % 2 else _LINK.sub(link, part) for i, part in enumerate(parts))


def publish(cell, page, reachable):
    """Change a cell of an executed notebook into what the site shows of it."""
    if cell.cell_type == "markdown":
        cell.source = relinked(cell.source, page, reachable)
        return
    tags = cell.metadata.setdefault("tags", [])
    if cell.metadata.get("jupyter", {}).get("source_hidden"):
        tags += ["remove-input", "hide-output"]
    is_check = re.match(r"lab\.check\(", cell.source)
    cell.outputs = [shown for each in cell.outputs for shown in published(each, bool(is_check))]


_LOG = re.compile(r'<a href="mpilab-logs/[^>]*>(.*?)</a>', re.DOTALL)
_NOTEBOOK = re.compile(r'href="([\w-]+)\.ipynb"')
_ITEM = re.compile(r"^  \S+ (.+)$", re.MULTILINE)


def published(output, is_check):
    """The outputs that the site shows for one of a notebook."""
    data = output.get("data", {})
    if is_check and ": not yet" in data.get("text/plain", ""):
        title, _, items = data["text/plain"].partition(": not yet")
        tried = "".join(f"<li>{html.escape(item)}</li>" for item in _ITEM.findall(items))
        said = f"<p>Not solved yet: <em>{html.escape(title)}</em>. This check tries:</p>"
        data = {"text/html": f'<div class="mpilab-unsolved">{said}<ul>{tried}</ul></div>'}
        return [nbformat.v4.new_output("display_data", data)]
    if PLOT in data:
        alt = data["text/plain"].removeprefix("[figure: ").removesuffix("]")
        data = {"text/html": figure_html(data[PLOT], alt)}
        return [nbformat.v4.new_output("display_data", data)]
    if "(nothing written)" in data.get("text/plain", ""):  # mpilab.predict's answer
        answer = data["text/plain"].partition("What happens:")[2].strip()
        return [
            nbformat.v4.new_output("display_data", {"text/html": f"<p>{html.escape(answer)}</p>"})
        ]
    if WIDGET in data:
        output.data = {"text/plain": data["text/plain"]}
    if output.get("name") == "stderr":
        output.text = re.sub(r"^\S*ipykernel_\d+/\d+\.py:\d+: ", "", output.text)
    if "text/html" in data:  # a log of a failure stays where the lab ran
        without_logs = _LOG.sub(r"\1", data["text/html"])
        data["text/html"] = _NOTEBOOK.sub(r'href="\1.html"', without_logs)
    return [output]


def figure_html(figure, alt):
    """HTML of a plotly figure, given as its JSON, that site.js draws."""
    height = figure["layout"].get("height") or 450
    text = json.dumps(figure).replace("<", "\\u003c")
    name = html.escape(alt.splitlines()[0], quote=True)
    return (
        f'<div class="mpilab-plot" role="group" aria-label="{name}" style="--height:{height}px">'
        f'<div></div><script type="application/json">{text}</script></div>'
    )


# The first page.


def deadlock(work):
    """The panel of a kernel that hangs, as the kit makes it; compiled in the folder `work`."""
    text = (SITE / "deadlock.c").read_text(encoding="utf-8")
    library = build.build(text, work, stem="allgather_mine", name="site/deadlock.c").library
    (result,) = mpirun.run_cases(library, "allgather_mine", [Case("allgather", 4, 4, "int")])
    found = KernelRun("allgather_mine", result).diagnosis
    if found is None or found.kind != DEADLOCK:
        raise MpilabError(f"site/deadlock.c: a run of it is no deadlock, but {result.outcome}")
    panel = render.card(found, "deadlock")
    return f"<style>{render.style()}</style>{panel}"


def crossovers():
    """The figure of where other broadcasts become better than a tree, simulated."""
    rows = crossover.read()
    found = {
        "simulated": {
            name: crossover.crossings(rows, crossover.FLAT, name) for name in crossover.OTHERS
        }
    }
    figure = distances.crossover(found, {}, "Where another broadcast becomes faster than the tree")
    figure.update_layout(height=430, title_text="", margin_t=10, yaxis_title_text="from this size")
    return figure


# From the sources to the pages.


def run_sphinx(source, out):
    """Make the pages in `out`; raises MpilabError if Sphinx warns of anything."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-j", "auto"]
    command += ["-d", source.with_name("doctrees"), source, out]
    environment = {**os.environ, "MPILAB_SITE": str(SITE)}
    done = subprocess.run(command, env=environment)
    if done.returncode:
        raise MpilabError(
            f"{source}: Sphinx ended with {done.returncode}; correct what its warnings above name"
        )


class Page(HTMLParser):
    """The ids of a page, what it links to, and what a browser loads for it."""

    LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.loaded = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        """Note what the tag says."""
        attributes = dict(attrs)
        self.ids.update(filter(None, (attributes.get("id"), attributes.get("name"))))
        if tag == "a" and attributes.get("href"):
            self.links.append(attributes["href"])
        if found := attributes.get(self.LOADED.get(tag)):
            self.loaded.append(found)


def broken(out):
    """A line for each link below `out` that leads nowhere, and each resource from the network."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(out.rglob("*.html"))}
    lost = []
    for path, page in pages.items():
        where = path.relative_to(out)
        for link in (*page.links, *page.loaded):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loaded and parts.scheme != "data":
                    lost.append(f"{where}: loads {link}")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            heading = unquote(parts.fragment)
            if not target.is_file():
                lost.append(f"{where}: {link}: no such file")
            elif heading and target in pages and heading not in pages[target].ids:
                lost.append(f"{where}: {link}: no such heading")
    return lost


if __name__ == "__main__":
    sys.exit(door.run("tools/build_site.py", main))
