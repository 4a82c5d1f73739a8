"""What students of a lab get: its notebook, and what of the kit they need, without the answers."""

import shutil
from pathlib import Path

from mpilab.errors import InputError
from mpilab.grading.release import write_release

ROOT = Path(__file__).resolve().parents[2]

# Files of the kit that students need, beside their notebook. `grading/` and `labs/source/` hold
# the rubrics and the solutions: they must never be on this list.
HANDED_OUT = (
    "mpilab",
    "src_c",
    "data",
    "hostfiles",
    "tools",
    "pyproject.toml",
    "constraints.txt",
    "environment.yml",
    "Makefile",
    "README.md",
    "LICENSE",
)
# What a build leaves behind holds the solutions as machine code.
_DERIVED = ("__pycache__", "*.py[cod]", "*.o", "*.so", "*.a", "build", "*.egg-info", ".*")


def handout(lab, directory, leave_out=(), root=ROOT):
    """Copy what students of `lab` get into `directory`, which must be new or empty.

    That is a fresh student version in `labs/`, its public checks, and the files of `HANDED_OUT`
    under `root`, without what a build leaves behind. `leave_out` names files below `src_c/` that
    would give an answer away, e.g. 'allgather/pairwise.c'. Raises InputError where one of them
    does not exist: a misspelt name would hand out the solution.
    """
    root, directory = Path(root), Path(directory)
    source = root / "labs" / "source" / f"{lab}.py"
    if not source.is_file():
        raise InputError(f"{source}: no such lab; 'ls {source.parent}' shows the labs there are")
    hidden = {(root / "src_c" / name).resolve() for name in leave_out}
    for path in sorted(hidden):
        if not path.is_file() or not path.is_relative_to((root / "src_c").resolve()):
            raise InputError(
                f"{path}: to be left out of the handout of {lab}, but there is no such file in "
                f"{root / 'src_c'}; correct its name, e.g. 'allgather/pairwise.c'"
            )
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise InputError(f"{directory}: is not an empty folder; name a new one for the handout")

    derived = shutil.ignore_patterns(*_DERIVED)

    def ignored(folder, names):
        here = Path(folder).resolve()
        links = {name for name in names if (here / name).is_symlink()}
        return derived(folder, names) | links | {name for name in names if here / name in hidden}

    directory.mkdir(parents=True, exist_ok=True)
    for name in HANDED_OUT:
        if (root / name).is_dir():
            shutil.copytree(root / name, directory / name, ignore=ignored)
        elif (root / name).is_file():
            shutil.copy2(root / name, directory / name)
    write_release(source, directory / "labs" / f"{lab}.ipynb")
    checks = root / "labs" / "checks" / f"{lab}.toml"
    if checks.is_file():
        (directory / "labs" / "checks").mkdir()
        shutil.copy2(checks, directory / "labs" / "checks" / checks.name)
    return directory
