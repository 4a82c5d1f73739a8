"""Sphinx's settings for the site; tools/build_site.py lays out the pages, and runs Sphinx."""

import importlib.util
import os
from pathlib import Path

import plotly
from pygments.lexer import RegexLexer, bygroups, using
from pygments.lexers import CLexer
from pygments.token import Comment

HERE = Path(os.environ["MPILAB_SITE"])  # this folder in the kit; Sphinx runs on a copy of this file
_spec = importlib.util.find_spec("sphinx-mathjax-offline")
MATHJAX = Path(_spec.origin).parent / "static" / "mathjax"

project = "mpilab"
author = "the mpilab authors"
project_copyright = author
extensions = ["myst_nb", "sphinx.ext.mathjax"]
root_doc = "index"

nb_execution_mode = "off"  # the notebooks have been executed
nb_render_markdown_format = "myst"
# Only answers to predictions are folded.
nb_code_prompt_show = nb_output_prompt_show = "Show what happens"
nb_code_prompt_hide = nb_output_prompt_hide = "Hide what happens"
highlight_language = "none"
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
myst_update_mathjax = False
mathjax_path = "mathjax/tex-chtml.js"

html_theme = "furo"
html_title = "mpilab"
html_static_path = [str(HERE / "static")]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_show_sphinx = False
html_copy_source = False
# Reading the pages that were found takes a web server; the site also works from a folder.
html_show_search_summary = False


class KernelCell(RegexLexer):
    """A cell that begins with %%kernel: C after the first line."""

    tokens = {"root": [(r"(%%kernel.*\n)((?:.|\n)*)", bygroups(Comment.Preproc, using(CLexer)))]}


def show_kernels_as_c(_, doctree):
    """Have cells that begin with %%kernel highlighted as C."""
    for node in doctree.findall(lambda node: node.tagname == "literal_block"):
        if node.astext().startswith("%%kernel"):
            node["language"] = "mpilab-kernel"


def change_page(app, pagename, templatename, context, doctree):
    """Load plotly.js in pages with figures only, and give the sidebar's headings their level."""
    tree = context.get("furo_navigation_tree", "")
    context["furo_navigation_tree"] = tree.replace(
        'role="heading"', 'role="heading" aria-level="2"'
    )
    if 'class="mpilab-plot"' in context.get("body", ""):
        app.add_js_file("plotly.min.js", priority=400, loading_method="defer")


def copy_scripts(app, error):
    """Copy plotly.js and MathJax into the site, once for all pages."""
    if error is None:
        static = Path(app.outdir) / "_static"
        source = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
        copy(source, static / source.name)
        for name in ("tex-chtml.js", *(MATHJAX / "output/chtml/fonts").rglob("*.woff")):
            copy(MATHJAX / name, static / "mathjax" / (MATHJAX / name).relative_to(MATHJAX))


def copy(source, target):
    """Copy a file, with its folder, unless it is there."""
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source.read_bytes())


def setup(app):
    """Register all of the above."""
    app.add_lexer("mpilab-kernel", KernelCell)
    app.connect("doctree-read", show_kernels_as_c)
    app.connect("html-page-context", change_page, priority=900)  # after the theme
    app.connect("build-finished", copy_scripts)
