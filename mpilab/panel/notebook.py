"""A diagnosis in the notebook: the panel, the same as text, and the figures that belong to it."""

from mpilab.panel import log, words
from mpilab.panel.page import fragment
from mpilab.panel.text import text


def show(diagnosis, figures=(), *, title=""):
    """Display the diagnosis as one output (HTML and text), then the plotly `figures`.

    title  what was run, e.g. 'allgather_ring with 4 ranks': stands above the headline.
    """
    from IPython.display import display

    kept = None
    if _is_worth_keeping(diagnosis):
        kept = log.keep(log.whole(diagnosis), kind=diagnosis.kind)
    link = "" if kept is None else kept.as_posix()
    plain = text(diagnosis)
    if title:
        plain = f"{words.sentence(title)}\n{plain}"
    if link:
        plain += f"\n\n  The whole log: {link}"
    bundle = {"text/html": fragment(diagnosis, link, title=title), "text/plain": plain}
    display(bundle, raw=True)
    if figures:
        from mpilab.plots import style

        for figure in figures:
            style.show(figure)


def _is_worth_keeping(diagnosis):
    """Is there more than the panel shows, or noise that one may want to look up later?"""
    shown, omitted = words.printed(diagnosis)
    if omitted or any(left_out for _, _, left_out in shown):
        return True
    if words.speaker(diagnosis.kind) == "the compiler":
        return words.last_lines(diagnosis.log, words.LOG_LINES)[1] > 0
    return bool(diagnosis.log)
