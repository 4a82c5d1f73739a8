"""A build step for wheels, named in pyproject.toml: the kit's sources and labs go to mpilab/kit.

They stay where they are in the repository. An editable installation uses them there.
"""

import shutil
import subprocess
from pathlib import Path

from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parents[1]
KIT = "mpilab/kit"
FOLDERS = ("src_c", "labs", "grading", "hostfiles", "slurm", "data", "docs", "tools")
# The basis of a handout for students (mpilab/course/handout.py).
FILES = ("Makefile", "README.md", "LICENSE", "pyproject.toml", "constraints.txt", "environment.yml")
MADE = ("__pycache__", ".ipynb_checkpoints", ".virtual_documents", "mpilab-logs", "build")


def described():
    """The commit as `git describe` names it, for mpilab.util.kit.revision; '' without a clone."""
    if not (HERE / ".git").exists() or not shutil.which("git"):
        return ""
    words = ["git", "-C", HERE, "describe", "--tags", "--match", "v*", "--always", "--dirty"]
    return subprocess.run(words, capture_output=True, text=True).stdout


class BuildWithKit(build_py):
    """Builds the package with the kit's files beside its modules."""

    def _revision(self):
        return Path(self.build_lib, KIT, "REVISION")

    def _files(self):
        """{path in the wheel: path in the repository}."""
        paths = [HERE / name for name in FILES]
        for folder in FOLDERS:
            paths += [path for path in (HERE / folder).rglob("*") if path.is_file()]
        inside = {path.relative_to(HERE): path for path in sorted(paths)}
        return {
            str(Path(self.build_lib, KIT, name)): str(path)
            for name, path in inside.items()
            if not any(part in MADE or part.startswith(".") for part in name.parts)
            and path.suffix not in (".pyc", ".o", ".so")
        }

    def run(self):
        if not self.editable_mode:  # leftovers of an earlier build would go into the wheel
            shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()
        if not self.editable_mode:
            for target, source in self._files().items():
                self.mkpath(str(Path(target).parent))
                self.copy_file(source, target)
            self._revision().write_text(described(), encoding="utf-8")

    def get_outputs(self, include_bytecode=True):
        kit = [] if self.editable_mode else list(self._files())
        kit += [] if self.editable_mode else [str(self._revision())]
        return super().get_outputs(include_bytecode) + kit
