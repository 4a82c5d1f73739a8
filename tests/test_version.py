"""The version is the same wherever it is written, and git tells which commit it is."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

import mpilab
from mpilab.cli import main
from mpilab.util import kit

ROOT = Path(__file__).resolve().parents[1]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
HEADINGS = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)


def git(folder, *words):
    known = ["-c", "user.name=x", "-c", "user.email=x@x"]
    ran = subprocess.run(["git", "-C", folder, *known, *words], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split()


def test_every_file_has_the_same_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == str(CITATION["version"]) == mpilab.__version__


def test_the_change_log_begins_with_unreleased_and_dates_each_version():
    assert HEADINGS[0] == "[Unreleased]"
    found = [re.fullmatch(r"\[(\d+\.\d+\.\d+)\] - \d{4}-\d\d-\d\d", each) for each in HEADINGS[1:]]
    assert all(found), HEADINGS
    numbers = [tuple(map(int, each[1].split("."))) for each in found]
    assert numbers == sorted(set(numbers), reverse=True)


def test_each_tag_is_in_the_change_log(require_tool):
    require_tool("git")
    if not (ROOT / ".git").exists():
        pytest.skip("this is no clone")
    known = {heading.partition("]")[0][1:] for heading in HEADINGS}
    assert {tag.removeprefix("v") for tag in git(ROOT, "tag", "--list", "v*")} <= known


def test_the_citation_has_what_its_format_requires():
    # https://github.com/citation-file-format/citation-file-format/blob/main/schema-guide.md
    assert {"cff-version", "message", "title", "authors"} <= set(CITATION)
    assert CITATION["type"] == "software" and CITATION["license"] == "MIT"
    dated = any(f"[{mpilab.__version__}] - {CITATION.get('date-released')}" == h for h in HEADINGS)
    assert dated or "date-released" not in CITATION


def test_the_command_names_the_commit(tmp_path, monkeypatch, capsys, require_tool):
    require_tool("git")
    monkeypatch.setattr(kit, "ROOT", tmp_path)

    def told():
        with pytest.raises(SystemExit):
            main(["--version"])
        return capsys.readouterr().out.removeprefix(f"mpilab {mpilab.__version__}").strip()

    assert told() == ""
    git(tmp_path, "init", "-q")
    (tmp_path / "file").write_text("1")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    git(tmp_path, "tag", "-a", "v9.8.7", "-m", "9.8.7")
    assert told() == "(v9.8.7)"
    (tmp_path / "file").write_text("2")
    assert told() == "(v9.8.7-dirty)"
    git(tmp_path, "commit", "-qam", "two")
    assert re.fullmatch(r"\(v9\.8\.7-1-g[0-9a-f]+\)", told())
    (tmp_path / "REVISION").write_text("v1.2.3\n")  # in a wheel
    assert told() == "(v1.2.3)"
