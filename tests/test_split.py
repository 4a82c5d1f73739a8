"""The tests run in parts: `make test` in minutes, `make test-all` with the rest. Every test is in
exactly one of them. `.ci/run` runs both, and those of tests/fresh by `make test-fresh`."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import thorough

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("test", "test-all")
CI_PARTS = ("test", "test-fresh", "test-all")
# The kit's features, and a test of each that is part of `make test`.
CAPABILITIES = {
    "a class is graded": "grading/test_grade.py::TestTheSampleClass::test_grading_anew",
    "answers and seeded bugs are judged": "grading/test_proving.py",
    "a sandbox holds": "grading/test_sandbox.py",
    "a browser shows a page": "browser/test_marking_page.py",
    "hosts are emulated": "emulated/test_emulated_hosts.py",
    "a cluster starts on emulated hosts": "cluster/test_cluster_on_hosts.py::TestWhereRanksAre",
    "an ipyparallel cluster fails and heals": "cluster/test_engines.py::TestFailures",
    "a kernel is simulated": "simulated/test_simulated_runs.py",
    "a deadlock is explained": "broken/test_corpus.py::test_a_run_that_fails_is_explained[",
    "algorithms are swept": "measure/test_sweep_run.py",
    "OSU's benchmarks run": "measure/test_osu_runs.py",
    "a job runs in Slurm": "slurm/test_slurm_jobs.py",
    "notebooks are released": "grading/test_release.py",
} | {
    f"lab {lab.stem} runs blank": "labs/test_every_lab.py::"
    f"test_run_all_of_the_blank_lab_ends_without_error_and_says_not_yet[{lab.stem}]"
    for lab in sorted((ROOT / "labs" / "source").glob("*.py"))
}


def environment():
    """Without the variables that an outer make or pytest has set."""
    theirs = ("MAKE", "PYTEST", "MFLAGS")
    return {name: value for name, value in os.environ.items() if not name.startswith(theirs)}


def command(verb):
    """The words of the pytest command that a verb of the Makefile runs."""
    planned = subprocess.run(
        ["make", "-n", verb],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    (line,) = (line for line in planned.stdout.splitlines() if " -m pytest" in line)
    return shlex.split(line)


@pytest.fixture(scope="module")
def collected():
    """{part: (its tests, how many there are in all)}, according to pytest."""
    collect = ["--collect-only", "-q", "-n0", "-p", "no:cacheprovider"]
    running = {
        part: subprocess.Popen(
            [*command(part), *collect],
            cwd=ROOT,
            env=environment(),
            text=True,
            stdout=subprocess.PIPE,
        )
        for part in PARTS
    }
    found = {}
    for part, process in running.items():
        said = process.communicate()[0].splitlines()
        assert process.returncode == 0, said[-20:]
        tests = [line for line in said if line.startswith("tests/")]
        of = re.search(r"(\d+)/(\d+) tests collected", said[-1])
        assert int(of[1]) == len(tests)
        found[part] = tests, int(of[2])
    return found


class TestTheParts:
    def test_every_test_is_in_one_of_them_and_in_one_only(self, collected):
        (quick, every), (rest, every_too) = (collected[part] for part in PARTS)
        assert len(quick) > 1000 and len(rest) > 100
        assert len({*quick, *rest}) == len(quick) + len(rest) == every == every_too

    def test_every_line_of_the_list_names_a_test(self, collected):
        tests = [test for part in PARTS for test in collected[part][0]]
        used = {line for test in tests for line in thorough.lines_on(test)}
        assert [line for line in thorough.lines() if line not in used] == []

    @pytest.mark.parametrize("what", CAPABILITIES)
    def test_make_test_tries_everything_that_the_kit_can_do(self, collected, what):
        assert any(each.startswith(f"tests/{CAPABILITIES[what]}") for each in collected["test"][0])


CLOSING = "========== 3 passed in 1.50s =========="
FAILED = "===== 1 failed, 2 passed in 2.50s (0:01:02) ====="


@pytest.fixture
def ci(tmp_path):
    """A function: what `.ci/run` does if `make test` and the other parts behave as given."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci")

    def run(**recipes):
        rules = [f"{part}:\n\t@{recipes.get(part.replace('-', '_'), '')}" for part in CI_PARTS]
        rules = [
            rule.replace("@", f"@echo {part} >> ran; ", 1)
            for part, rule in zip(CI_PARTS, rules, strict=True)
        ]
        (tmp_path / "Makefile").write_text("\n".join(rules) + "\n")
        done = subprocess.run(
            [tmp_path / ".ci" / "run"], env=environment(), text=True, capture_output=True
        )
        return done, (tmp_path / "ran").read_text().split()

    return run


class TestCI:
    def test_passes_where_every_part_does_and_ends_with_the_closing_line_of_pytest(self, ci):
        done, ran = ci(test=f"echo '{CLOSING}'", test_all=f"echo '{CLOSING}'; echo and so on")
        assert (done.returncode, ran) == (0, [*CI_PARTS])
        assert done.stdout.splitlines()[-1] == CLOSING

    @pytest.mark.parametrize("part", CI_PARTS)
    def test_fails_where_a_part_does_and_runs_the_others_all_the_same(self, ci, part):
        recipes = {name.replace("-", "_"): f"echo '{CLOSING}'" for name in CI_PARTS}
        done, ran = ci(**recipes | {part.replace("-", "_"): f"echo '{FAILED}'; exit 1"})
        assert (done.returncode, ran) == (1, [*CI_PARTS])
        assert f"make {part}: exit 2 after" in done.stdout  # make's own status for a failed recipe
        assert done.stdout.splitlines()[-1] == FAILED

    def test_says_so_where_pytest_never_came_to_its_end(self, ci):
        done, _ = ci(test="exit 3", test_fresh=f"echo '{CLOSING}'", test_all=f"echo '{CLOSING}'")
        assert done.returncode == 1
        assert done.stdout.splitlines()[-1] == "no closing line of pytest"

    def test_a_thorough_test_that_would_begin_too_late_is_skipped_and_named_and_others_run(self):
        file = "tests/browser/test_site.py"
        tests = (
            "test_no_page_holds_an_answer_or_a_path_of_this_machine",
            "test_dead_links_and_resources_from_the_network_are_named",
        )
        assert [thorough.is_named(f"{file}::{test}") for test in tests] == [True, False]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-n0", "-k", "no_page or dead_links", ROOT / file],
            cwd=ROOT,
            env=environment() | {"MPILAB_LAST_BEGIN": "1"},
            text=True,
            capture_output=True,
        )
        assert done.returncode == 0, done.stdout
        assert "1 passed, 1 skipped" in done.stdout
        assert (
            f"NOT TESTED: the time that CI has was up before 1 test began, of {file}" in done.stdout
        )

    def test_the_last_thorough_test_begins_minutes_before_the_end(self, ci):
        recipe = "echo left $$((MPILAB_LAST_BEGIN - $$(date +%s)))"
        done, _ = ci(test=recipe)
        left = int(re.search(r"^left (\d+)$", done.stdout, re.M)[1])
        limit = int(re.search(r"LIMIT_S=(\d+)", (ROOT / ".ci" / "run").read_text())[1])
        assert limit // 2 < left < limit - 300

    def test_missing_tools_fail_and_nobody_is_asked_anything(self, ci):
        done, _ = ci(test='test "$$CI" = true && test -z "$$(cat)"', test_all=":")
        assert done.returncode == 0, done.stdout + done.stderr
