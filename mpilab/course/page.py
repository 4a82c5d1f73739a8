"""Render pages for instructors as self-contained HTML files.

They quote students' texts, so all values are escaped, and the page's Content-Security-Policy allows
only scripts whose hashes it names: those of our figures.
"""

import base64
import hashlib
import re
from functools import cache
from pathlib import Path

import jinja2
from markupsafe import Markup

from mpilab.util.text import plain

PACKAGE = Path(__file__).resolve().parents[1]
_SCRIPT = re.compile(r"<script[^>]*>(.*?)</script>", re.DOTALL | re.IGNORECASE)


def render(template, figures=(), **values):
    """Render a template (a path within mpilab, e.g. 'course/report.html.j2'); the page as text.

    `figures` are trusted HTML fragments whose scripts may run. The template gets them as `figures`,
    the policy as `policy` and the style sheet as `style`; `values` are escaped.
    """
    return (
        _environment()
        .get_template(template)
        .render(
            figures=[Markup(figure) for figure in figures],
            policy=_policy("".join(figures)),
            **values,
        )
    )


def _policy(html):
    """A Content-Security-Policy under which only the scripts in `html` run."""
    hashes = {
        "'sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() + "'"
        for script in _SCRIPT.findall(html)
    }
    scripts = " ".join(sorted(hashes)) or "'none'"
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


@cache
def _environment():
    # select_autoescape decides by file name and would not escape in a '.j2'.
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(PACKAGE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["plain"] = plain
    style = (Path(__file__).parent / "page.css").read_text(encoding="utf-8")
    environment.globals["style"] = Markup(style)
    return environment
