"""Code shared by all commands: the parser and its options, JSON output, and modules imported
late."""

import argparse
import dataclasses
import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mpilab.errors import InputError
from mpilab.util.door import LatePackage
from mpilab.util.text import suggestion
from mpilab.util.units import positive, size

# `mpilab --help` starts without numpy, plotly and ipyparallel, and without what only some commands
# need: tqdm looks up its version among the installed packages, which takes as long as Python.
mpilab: Any = LatePackage("mpilab")
progress: Any = LatePackage("tqdm")
statistics: Any = LatePackage("statistics")


# The parser.


class Parser(argparse.ArgumentParser):
    """A parser that keeps the layout of descriptions, and suggests the nearest word for a typo."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(**options)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            known = f"(choose from {', '.join(map(repr, action.choices))})"
            meant = suggestion(str(value), map(str, action.choices))
            raise argparse.ArgumentError(action, f"invalid choice: {value!r} {known}{meant}")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Like argparse's, but an unknown argument is an error of this command."""
        found, rest = super().parse_known_args(args, namespace)
        if rest:
            meant = suggestion(rest[0].partition("=")[0], self._option_string_actions)
            self.error(f"unrecognized arguments: {' '.join(rest)}{meant}")
        return found, rest


class Commands:
    """The subcommands of a parser, with their purposes."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self._parsers = parser.add_subparsers(
            metavar="COMMAND", required=True, help="'mpilab COMMAND --help' explains it"
        )
        self.summaries: dict[str, str] = {}

    def add_parser(self, name: str, *, help: str, **options: Any) -> argparse.ArgumentParser:
        """The parser of a new command; `help` describes it if there is no `description`."""
        self.summaries[name] = help
        options.setdefault("description", f"{help[0].upper()}{help[1:]}.")
        return self._parsers.add_parser(name, **options)

    def listing(self, groups: Mapping[str, Iterable[str]]) -> str:
        """The commands by group: {title: names}, one on each line with its summary."""
        width = max(map(len, self.summaries))
        lines = []
        for title, names in groups.items():
            lines += [f"{title}:", *(f"    {n:{width}}  {self.summaries[n]}" for n in names), ""]
        return "\n".join(lines).rstrip()


# Options that several commands have, under the same name everywhere.


class _Former(argparse.Action):
    """An option's former name: it still works, with a note on stderr."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        print(f"mpilab: {option_string} is now called {self.const}", file=sys.stderr)
        setattr(namespace, self.dest, values)


def add_former(
    parser: argparse.ArgumentParser,
    former: str,
    new: str,
    *,
    dest: str = "",
    type: Callable[[str], Any] = str,
) -> None:
    """Accept `former`, the old name of the option `new`, with a note on stderr."""
    parser.add_argument(
        former,
        action=_Former,
        const=new,
        dest=dest or new.strip("-").replace("-", "_"),
        type=type,
        default=argparse.SUPPRESS,
        help=argparse.SUPPRESS,
    )


def add_out(
    parser: argparse.ArgumentParser, help: str, *, metavar: str = "FILE", former: str = ""
) -> None:
    """Add -o, --out: what the command writes."""
    parser.add_argument("-o", "--out", type=Path, metavar=metavar, help=help)
    if former:
        add_former(parser, former, "--out", type=Path)


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add --json."""
    parser.add_argument("--json", action="store_true", help="print JSON only")


def add_trace(parser: argparse.ArgumentParser) -> None:
    """Add --trace."""
    parser.add_argument(
        "--trace",
        metavar="FILE",
        help="also write the recording as a trace: FILE.json for ui.perfetto.dev, or the folder "
        "FILE.otf2 for Vampir and Score-P's tools",
    )


def add_lab(parser: argparse.ArgumentParser, otherwise: str = "") -> None:
    """Add --lab; with `otherwise`, which says which lab is the default, the option is optional."""
    default = f" (default: {otherwise})" if otherwise else ""
    parser.add_argument(
        "--lab", required=not otherwise, help=f"name of the lab, e.g. 02-allgather{default}"
    )


def add_graded(parser: argparse.ArgumentParser) -> None:
    """Add the folder with a gradebook, and --lab."""
    parser.add_argument("folder", type=Path, metavar="DIR", help="output folder of 'mpilab grade'")
    add_lab(parser, "the only one in the gradebook")


def add_jobs(parser: argparse.ArgumentParser, what: str = "answers") -> None:
    """Add --jobs."""
    parser.add_argument(
        "--jobs",
        type=positive,
        metavar="N",
        help=f"{what} at a time (default: one more than there are cores)",
    )


def add_no_progress(parser: argparse.ArgumentParser) -> None:
    """Add --no-progress."""
    parser.add_argument("--no-progress", action="store_true", help="show no progress bar")


def add_unsafe(parser: argparse.ArgumentParser) -> None:
    """Add --unsafe-no-sandbox."""
    parser.add_argument(
        "--unsafe-no-sandbox",
        action="store_true",
        help="run submissions with your own rights; only for submissions that you trust",
    )


def add_ranks(
    parser: argparse.ArgumentParser,
    help: str,
    *,
    metavar: str = "P",
    type: Callable[[str], Any] = int,
    default: Any = None,
) -> None:
    """Add -n, --ranks: one number, or a list of numbers with the type str."""
    parser.add_argument("-n", "--ranks", type=type, metavar=metavar, default=default, help=help)


def add_seed(parser: argparse.ArgumentParser, what: str) -> None:
    """Add --seed, of `what`."""
    parser.add_argument(
        "--seed",
        type=int,
        default=1,
        metavar="N",
        help=f"seed of {what} (default: 1)",
    )


def add_source(parser: argparse.ArgumentParser, former: str = "") -> None:
    """Add --source: the user's C file."""
    parser.add_argument(
        "--source",
        type=Path,
        metavar="FILE.c",
        help="C file that defines the kernel (default: the kit's own)",
    )
    if former:
        add_former(parser, former, "--source", type=Path)


def add_root(parser: argparse.ArgumentParser, more: str = "") -> None:
    """Add --root."""
    parser.add_argument(
        "--root", type=int, default=0, metavar="R", help=f"rank of the root (default: 0){more}"
    )


def add_segment(parser: argparse.ArgumentParser, type: Callable[[str], Any] = size) -> None:
    """Add --segment."""
    parser.add_argument(
        "--segment",
        type=type,
        default=0,
        metavar="BYTES",
        help="size of a segment, e.g. 4096 or 8K (default: the algorithm's own)",
    )


def add_tree(parser: argparse.ArgumentParser) -> None:
    """Add --fanout and --radix."""
    parser.add_argument(
        "--fanout",
        type=int,
        default=0,
        metavar="K",
        help="number of children of a rank, or of chains",
    )
    parser.add_argument(
        "--radix", type=int, default=0, metavar="K", help="radix of a k-nomial tree"
    )


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Add --buffer and --aggregators, which tune the kernels that read files."""
    parser.add_argument(
        "--buffer",
        type=size,
        default=0,
        metavar="BYTES",
        help="reads: maximum size of one request, e.g. 1M (default: the algorithm's own)",
    )
    parser.add_argument(
        "--aggregators",
        type=int,
        default=0,
        metavar="A",
        help="reads: number of ranks that read for all (default: the algorithm's own)",
    )


def write_page(figure: Any, path: Path) -> None:
    """Write the figure, with its text alternative, as an HTML page that needs no network."""
    title = figure.layout.title.text
    page = (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{title}</title></head>\n<body>\n"
        f"{mpilab.plots.style.fragment(figure, plotlyjs=True)}\n</body></html>\n"
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written: {error.strerror}; name another file"
        ) from None


def names(text: str) -> list[str]:
    """The words of 'bcast,gather'."""
    return [name.strip() for name in text.split(",")]


# JSON output.


def print_json(value: Any) -> None:
    """Print dataclasses, named tuples, numpy arrays and their contents as JSON."""
    print(json.dumps(plain_data(value), indent=2, ensure_ascii=False, allow_nan=False))


def plain_data(value: Any) -> Any:
    """`value` as dicts, lists, numbers and strings; NaN and infinity become None."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [field.name for field in dataclasses.fields(value)]
        return {name: plain_data(getattr(value, name)) for name in fields}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return plain_data(value._asdict())
    if hasattr(value, "dtype"):
        return _plain_array(value)
    if isinstance(value, Mapping):
        return {str(key): plain_data(one) for key, one in value.items()}
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str | bytes):
        return [plain_data(one) for one in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def _plain_array(value: Any) -> Any:
    """A structured numpy array as a list of dicts, any other one as lists of numbers."""
    columns = value.dtype.names
    if columns is None:
        return plain_data(value.tolist())
    if value.ndim == 0:
        return {name: plain_data(value[name]) for name in columns}
    return [_plain_array(row) for row in value]
