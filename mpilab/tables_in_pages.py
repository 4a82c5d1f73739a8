"""Tables in pages of docs/, each between two marks, <!-- NAME: begin --> and <!-- NAME: end -->."""

from pathlib import Path

from mpilab.errors import InputError
from mpilab.whole_file import write_whole


def put(text, name, table):
    """`text` with `table` between the marks of that name; InputError where they are missing."""
    begin, end = (f"<!-- {name}: {what} -->" for what in ("begin", "end"))
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise InputError(f"the marks {begin} and {end} are missing; put them into the page")
    return f"{before}{begin}\n{table}\n{end}{after}"


def filled(text, tables):
    """The page `text` with `tables`, {name: Markdown}; InputError as `put`."""
    for name, table in tables.items():
        text = put(text, name, table)
    return text


def update(path, tables):
    """Put `tables`, {name: Markdown}, into the page at `path`, all or none; InputError, with the
    path, where that cannot be."""
    path = Path(path)
    try:
        write_whole(path, filled(path.read_text(encoding="utf-8"), tables))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read and written: {error.strerror}; give the page, one of docs/"
        ) from None
