"""The doctor: what is present, what is missing and what is broken, each with its remedy."""

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from mpilab.cli import main
from mpilab.doctor import (
    ORDER,
    USES,
    Check,
    as_json,
    examine,
    healthy,
    probes,
    table,
    verdicts,
    work,
)
from mpilab.doctor.check import (
    FAILED,
    MISSING,
    OK,
    PROBES,
    WARNING,
    Finding,
    Probe,
    Surroundings,
)
from mpilab.hosts.emulated.hosts import Capabilities
from mpilab.kernels import build, openmpi
from mpilab.util import kit as util_kit

LABS_NEED = {
    "python",
    "packages",
    "jupyterlab",
    "compiler",
    "open-mpi",
    "mpirun",
    "shared-memory",
    "disk",
    "c-build",
    "engines",
}


def look(name):
    """The one check of that name, made now."""
    (check,) = examine([name], progress=False)
    return check


@pytest.fixture
def unhurried(monkeypatch):
    """Real probes get minutes, because other tests keep this machine busy."""
    monkeypatch.setattr("mpilab.doctor.SECONDS", 300.0)
    patient = [replace(one, limit=120.0) for one in PROBES]
    monkeypatch.setattr("mpilab.doctor.PROBES", patient)


@pytest.fixture
def around(tmp_path):
    """Surroundings of a probe with five seconds."""
    return Surroundings(tmp_path, "", time.monotonic() + 5)


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """A function that puts shell scripts on PATH, which otherwise contains only the basics."""
    folder = tmp_path / "programs"
    folder.mkdir()
    basics = tmp_path / "basics"
    basics.mkdir()
    for name in ("sh", "env", "sleep", "cat", "make"):
        source = next(Path(d) / name for d in ("/usr/bin", "/bin") if (Path(d) / name).exists())
        (basics / name).symlink_to(source)
    monkeypatch.setenv("PATH", f"{folder}:{basics}")

    def put(name, script):
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    return put


def test_every_check_has_its_place_in_the_table_and_says_what_it_is_for():
    assert sorted(ORDER) == sorted(one.name for one in PROBES)
    assert all(one.why for one in PROBES)
    assert {one.name for one in PROBES if one.needed} == LABS_NEED


@pytest.mark.usefixtures("unhurried")
def test_this_machine_can_do_what_the_labs_need():
    """The tests themselves need all of that, so the doctor must find it."""
    checks = examine(sorted(LABS_NEED), progress=False)
    assert [one.status for one in checks if one.status not in (OK, WARNING)] == []
    assert healthy(checks)


def test_nothing_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    examine(["compiler", "mpirun", "engines", "shared-memory", "simgrid"], progress=False)
    assert list(tmp_path.iterdir()) == []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            assert "mpirun" not in process.name()


def test_json_has_all_fields_of_all_checks_and_the_verdict(monkeypatch, capsys):
    fast = [one for one in PROBES if one.name in ("python", "cores", "addr2line")]
    monkeypatch.setattr("mpilab.doctor.PROBES", fast)
    assert main(["doctor", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert set(told) == {"mpilab", "revision", "healthy", "verdicts", "checks"}
    assert told["healthy"] is True
    assert [one["name"] for one in told["checks"]] == ["python", "cores", "addr2line"]
    for one in told["checks"]:
        assert set(one) == {"name", "status", "found", "remedy", "why", "needed", "seconds"}
        assert one["status"] in (OK, WARNING, MISSING, FAILED)
        assert isinstance(one["seconds"], float) and isinstance(one["needed"], bool)
    for one in told["verdicts"]:
        assert set(one) == {"name", "status", "reasons", "remedies"}


def test_it_runs_from_outside_the_kits_folder(tmp_path):
    script = (
        "import sys; from mpilab.doctor import *\n"
        "checks = examine(['python', 'compiler', 'mpirun', 'c-build'], progress=False)\n"
        "print(table(checks)); sys.exit(not healthy(checks))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(util_kit.ROOT)}
    said = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=environment,
    )
    assert said.returncode == 0, said.stdout + said.stderr
    assert list(tmp_path.iterdir()) == []


class TestTable:
    CHECKS = [
        Check("compiler", OK, "gcc 12", "", "kernels are C", True, 0.1),
        Check("engines", FAILED, "no cluster", "make setup", "ranks of a notebook", True, 0.1),
        Check("shared-memory", MISSING, "there is no /dev/shm", "mount it", "messages", True, 0.1),
        Check("cores", WARNING, "1 core", "use two", "taking turns", False, 0.1),
        Check("slurm", MISSING, "not installed", "install slurm", "labs as jobs", False, 0.1),
    ]

    def test_has_a_mark_for_each_status_and_names_aligned(self):
        lines = table(self.CHECKS).splitlines()
        marks = {line.split()[1]: line[0] for line in lines if line[:1] in "✓!✗–" and line.strip()}
        assert marks == {
            "compiler": "✓",
            "engines": "✗",
            "shared-memory": "✗",
            "cores": "!",
            "slurm": "–",
        }
        assert (
            len(
                {
                    line.index(found)
                    for line, found in zip(
                        [lines[0], lines[1]], ["gcc 12", "no cluster"], strict=True
                    )
                }
            )
            == 1
        )

    def test_says_what_it_is_for_and_the_remedy_under_what_is_not_well_only(self):
        text = table(self.CHECKS)
        for words in ("remedy: make setup", "why: labs as jobs", "remedy: use two"):
            assert words in text
        assert "kernels are C" not in text

    def test_ends_with_what_keeps_the_labs_from_working(self):
        assert table(self.CHECKS).endswith(
            "The labs will not work here yet: engines, shared-memory. Start with the first ✗."
        )
        assert (
            table(self.CHECKS[3:]).splitlines()[-1].startswith("The labs work here. Only optional")
        )
        assert table(self.CHECKS[:1]).endswith("\nThe labs work here.")

    def test_only_what_the_labs_need_makes_it_unhealthy(self):
        assert not healthy(self.CHECKS)
        assert healthy(self.CHECKS[3:])
        assert json.loads(as_json(self.CHECKS[3:]))["healthy"] is True


class TestVerdicts:
    """What the checks mean for labs, grading, emulated hosts, simulation and Slurm."""

    FINE = [Check(name, OK, "there", "", "why", name in LABS_NEED, 0.1) for name in ORDER]

    def but(self, *others):
        """FINE checks, some replaced by those of `others`."""
        changed = {one.name: one for one in others}
        return [changed.get(one.name, one) for one in self.FINE]

    def of(self, *others):
        return {one.name: one for one in verdicts(self.but(*others))}

    def test_there_is_one_for_each_use_and_all_work_where_all_is_well(self):
        found = self.of()
        assert list(found) == list(USES) == ["labs", "grading", "hosts", "simulation", "slurm"]
        assert {one.status for one in found.values()} == {"works"}
        assert work(found.values(), USES)

    def test_every_check_that_a_use_names_is_made(self):
        for use in USES.values():
            assert {*use.needs, *use.misses} <= set(ORDER)
        assert set(USES["labs"].needs) >= LABS_NEED

    def test_without_simgrid_labs_and_grading_work_with_limits_that_are_named(self):
        gone = Check("simgrid", MISSING, "not on PATH", "apt-get install it", "", False)
        found = self.of(gone)
        assert [one.status for one in found.values()] == [
            "limited",
            "limited",
            "works",
            "broken",
            "works",
        ]
        assert "simulation cells of the labs do not run" in found["labs"].reasons[0]
        (lost,) = found["grading"].reasons
        assert "marks are not confirmed by simulation" in lost and "ungradable" in lost
        assert found["grading"].remedies == ("apt-get install it",)
        text = table(self.but(gone))
        assert text.endswith("\nThe labs work here, with the limits above.")
        assert "Only optional parts are missing" not in text
        assert text.count("remedy: apt-get install it") == 4

    def test_without_a_sandbox_grading_does_not_work_and_the_rest_does(self):
        gone = Check("bubblewrap", FAILED, "no namespaces", "allow them", "", False)
        limits = Check("grading-limits", FAILED, "no sandbox", "see bubblewrap above", "", False)
        found = self.of(gone, limits)
        assert [name for name, one in found.items() if one.status != "works"] == ["grading"]
        assert found["grading"].status == "broken"
        assert found["grading"].reasons == ("bubblewrap: no namespaces; also grading-limits",)
        assert found["grading"].remedies == ("allow them",)

    def test_a_warning_about_what_is_needed_is_a_limit(self):
        warned = Check("cores", WARNING, "1 core", "use two", "", False)
        found = self.of(warned)
        assert found["labs"].status == "limited" and found["labs"].reasons == ("cores: 1 core",)

    @pytest.mark.parametrize(
        ("broken", "uses", "status"),
        [
            ("", (), 0),
            ("slurm", (), 0),
            ("simgrid", (), 0),
            ("bubblewrap", (), 1),
            ("engines", (), 1),
            ("bubblewrap", ("--for", "labs"), 0),
            ("simgrid", ("--for", "labs,simulation"), 1),
            ("slurm", ("--for", "slurm"), 1),
        ],
    )
    def test_the_exit_status_tells_whether_what_one_asked_for_works(
        self, monkeypatch, capsys, broken, uses, status
    ):
        checks = self.but(Check(broken, FAILED, "gone", "get it", "", broken in LABS_NEED))
        monkeypatch.setattr("mpilab.doctor.examine", lambda: checks)
        assert main(["doctor", *uses]) == status
        assert "emulated hosts  " in capsys.readouterr().out

    def test_a_use_that_there_is_not_is_refused_with_those_that_there_are(self, capsys):
        assert main(["doctor", "--for", "labs,cooking"]) != 0
        said = capsys.readouterr().err
        assert "'cooking' is unknown; write some of labs, grading, hosts, simulation, slurm" in said

    def test_a_missing_simulator_is_a_verdict_on_simulation(self, programs):
        programs("apt-get", "exit 1")
        (verdict,) = [one for one in verdicts([look("simgrid")]) if one.name == "simulation"]
        assert verdict.status == "broken"
        assert "not on PATH: smpicc, smpirun" in verdict.reasons[0]


class TestExamination:
    def add(self, monkeypatch, function, limit=5.0, needed=True):
        one = Probe("python", function, needed, limit, "a test", False)
        monkeypatch.setattr("mpilab.doctor.PROBES", [one])

    def test_an_exception_in_a_check_is_that_checks_status(self, monkeypatch):
        def broken(around):
            raise ZeroDivisionError("by a test")

        self.add(monkeypatch, broken)
        check = look("python")
        assert check.status == FAILED
        assert check.found == "the check itself failed: ZeroDivisionError: by a test"
        assert "bug in mpilab doctor" in check.remedy

    def test_a_program_without_end_is_ended_with_all_it_started(self, monkeypatch):
        seen = []

        def endless(around):
            said = around.run(["sh", "-c", "sleep 1000.25 & echo $!; wait"])
            seen.append(int(said.stdout))
            return Finding(FAILED if said.code is None else OK, "ended")

        monkeypatch.setattr("mpilab.doctor.SECOND_TRY_S", 10.0)
        self.add(monkeypatch, endless, limit=10.0)
        assert look("python").status == FAILED
        assert len(seen) == 2
        for process in seen:
            with suppress(psutil.NoSuchProcess):  # or it waits for init to take note
                assert psutil.Process(process).status() == "zombie"

    def test_what_only_a_second_try_has_the_time_for_is_a_warning(self, monkeypatch, tmp_path):
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        tries = []

        def slow(around):
            tries.append(around.left)
            # The first try reads from a pipe that nobody writes to.
            said = around.run(["cat", pipe] if len(tries) == 1 else ["true"])
            return Finding(FAILED if said.code is None else OK, "cat")

        self.add(monkeypatch, slow, limit=1.0)
        check = look("python")
        assert check.status == "warning" and check.found.startswith("cat; it took ")
        assert "busy or slow" in check.remedy
        assert tries[0] <= 1 < 40 < tries[1]

    def test_what_fails_at_once_is_not_tried_again(self, monkeypatch):
        tries = []
        self.add(monkeypatch, lambda around: tries.append(1) or Finding(FAILED, "no"), limit=60.0)
        assert look("python").status == FAILED and len(tries) == 1

    def test_a_temporary_folder_that_cannot_be_made_is_told_by_the_checks_that_need_it(
        self, monkeypatch
    ):
        def no_folder(*arguments, **options):
            raise FileNotFoundError(2, "No usable temporary directory")

        monkeypatch.setattr("mpilab.doctor.tempfile.mkdtemp", no_folder)
        compiler, python = examine(["compiler", "python"], progress=False)[::-1]
        assert (python.status, compiler.status) == (OK, FAILED)
        assert "No usable temporary directory" in compiler.found


class TestBase:
    def test_an_old_python_is_told_with_the_one_to_take(self, monkeypatch):
        monkeypatch.setattr("mpilab.doctor.probes.OLDEST_PYTHON", (9, 1))
        check = look("python")
        assert check.status == FAILED and "PYTHON=python9.1" in check.remedy

    def test_the_versions_of_the_packages_are_told(self):
        check = look("packages")
        assert check.status == OK
        for name in ("ipyparallel 9", "mpi4py 4", "numpy 2", "plotly", "papermill", "jupyterlab"):
            assert name in check.found

    def test_a_package_that_is_not_installed_is_named(self, monkeypatch):
        wanted = ["numpy>=2", "mpi4go>=1", "ruff>=1; extra == 'test'"]
        monkeypatch.setattr("mpilab.doctor.probes.metadata.requires", lambda name: wanted)
        check = look("packages")
        assert check.status == MISSING
        assert check.found == "not installed: mpi4go" and "make setup" in check.remedy

    def test_a_package_of_another_version_is_a_warning(self, monkeypatch):
        monkeypatch.setattr(
            "mpilab.doctor.probes.metadata.requires", lambda name: ["numpy>=99,<100"]
        )
        check = look("packages")
        assert check.status == WARNING and "wanted >=99,<100" in check.found

    def test_a_compiler_that_is_not_there_is_missing(self, monkeypatch):
        monkeypatch.setenv("OMPI_CC", "no-such-cc")
        check = look("compiler")
        assert check.status == MISSING and "no-such-cc" in check.found
        assert "OMPI_CC" in check.remedy

    def test_a_compiler_that_does_not_compile_is_failed(self, monkeypatch, programs):
        cc = programs("cc", "echo 'cc: stdio.h is gone' >&2; exit 1")
        monkeypatch.setenv("OMPI_CC", str(cc))
        check = look("compiler")
        assert check.status == FAILED and "stdio.h is gone" in check.found

    def test_a_compiler_without_sanitizers_is_told(self, monkeypatch, programs):
        cc = programs("cc", "echo 'ld: cannot find -lasan' >&2; exit 1")
        monkeypatch.setenv("OMPI_CC", str(cc))
        check = look("sanitizers")
        assert (check.status, check.needed) == (MISSING, False)
        assert "cannot find -lasan" in check.found and "libasan" in check.remedy

    def test_a_kit_that_is_not_built_says_make_build(self, monkeypatch, tmp_path):
        monkeypatch.setattr(build, "HARNESS", tmp_path / "libgone.so")
        check = look("c-build")
        assert check.status == MISSING and "libgone.so" in check.found
        assert "make build" in check.remedy

    def test_a_build_that_is_older_than_its_source_is_a_warning(self, monkeypatch, tmp_path):
        kit = tmp_path / "kit"
        (kit / "src_c").mkdir(parents=True)
        (kit / "src_c" / "new.c").write_text("int x;\n")
        (kit / "src_c" / "Makefile").write_text("all: made\nmade: new.c\n\ttouch made\n")
        product = kit / "made.so"
        product.touch()
        os.utime(product, (1, 1))
        monkeypatch.setattr("mpilab.util.kit.ROOT", kit)
        monkeypatch.setattr("mpilab.util.kit.BUILD", kit / "build")
        for name in ("RECORDER", "KERNELS", "HARNESS", "HARNESS_PROGRAM"):
            monkeypatch.setattr(build, name, product)
        check = look("c-build")
        assert check.status == WARNING and "src_c/new.c" in check.found

    def test_without_addr2line_there_are_no_lines(self, programs):
        check = look("addr2line")
        assert check.status == MISSING and "line of your cell" in check.why

    def test_jupyterlab_that_cannot_be_imported_is_told(self, monkeypatch, tmp_path):
        (tmp_path / "jupyterlab.py").write_text("raise ImportError('half installed')\n")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        check = look("jupyterlab")
        assert check.status == FAILED and "half installed" in check.found


class TestRanks:
    @pytest.mark.usefixtures("unhurried")
    def test_the_transports_that_two_ranks_really_take_are_told(self):
        check = look("mpirun")
        assert check.status == OK
        assert check.found == "two ranks run with pml ob1, btl self, sm"

    def test_a_user_who_leaves_out_shared_memory_is_warned(self, monkeypatch):
        monkeypatch.setenv("OMPI_MCA_btl", "self,tcp")
        check = look("mpirun")
        assert check.status == WARNING and "btl self, tcp" in check.found

    def test_ranks_that_do_not_start_are_told_with_mpiruns_words(self, monkeypatch, programs):
        fake = programs("mpirun", "echo 'no slots left' >&2; exit 1")
        monkeypatch.setattr(openmpi, "tool", lambda name: str(fake))
        assert "no slots left" in look("mpirun").found
        assert look("mpirun").status == FAILED
        assert look("open-mpi").status == FAILED

    def test_a_setting_that_breaks_the_ranks_is_told_by_open_mpis_first_sentence(self, monkeypatch):
        monkeypatch.setenv("OMPI_MCA_pml", "ucx")
        check = look("mpirun")
        assert check.status == FAILED
        assert check.found.startswith("two ranks do not run: No components were able to be opened")

    def test_an_mpirun_without_end_is_given_up(self, monkeypatch, programs, around):
        fake = programs("mpirun", "sleep 1000.5")
        monkeypatch.setattr(openmpi, "tool", lambda name: str(fake))
        (one,) = [one for one in PROBES if one.name == "mpirun"]
        status, found, _ = one.function(Surroundings(around.folder, "", time.monotonic() + 1))
        assert status == FAILED and "not finished within its time limit" in found
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                assert process.cmdline()[-1:] != ["1000.5"]

    def test_no_open_mpi_says_how_to_get_it(self, monkeypatch, programs):
        monkeypatch.setattr(sys, "executable", "/nowhere/python")
        for name in ("open-mpi", "compiler", "mpirun"):
            check = look(name)
            assert check.status == FAILED
            assert "make setup" in check.found

    def test_another_open_mpi_than_5_is_a_warning(self, monkeypatch, programs):
        fake = programs("mpirun", "echo 'mpirun (Open MPI) 4.1.4'")
        monkeypatch.setattr(openmpi, "tool", lambda name: str(fake))
        check = look("open-mpi")
        assert check.status == WARNING and "Open MPI 4.1.4" in check.found

    def test_settings_that_win_over_the_kits_are_named(self, monkeypatch):
        assert look("mpi-settings").status in (OK, WARNING)
        monkeypatch.setenv("OMPI_MCA_pml", "ucx")
        check = look("mpi-settings")
        assert check.status == WARNING
        assert "OMPI_MCA_pml=ucx (ours: ob1)" in check.found
        assert check.remedy.startswith("unset OMPI_MCA_pml")

    def test_settings_beside_the_kits_and_files_of_them_are_named(self, monkeypatch, tmp_path):
        monkeypatch.setenv("HOME", str(tmp_path))
        for name in [name for name in os.environ if "_MCA_" in name]:
            monkeypatch.delenv(name)
        assert look("mpi-settings").status == OK
        (tmp_path / ".openmpi").mkdir()
        (tmp_path / ".openmpi" / "mca-params.conf").write_text("# nothing\n")
        assert look("mpi-settings").status == OK
        (tmp_path / ".openmpi" / "mca-params.conf").write_text("coll = ^han\n")
        monkeypatch.setenv("OMPI_MCA_coll_base_verbose", "1")
        check = look("mpi-settings")
        assert check.status == WARNING
        assert "OMPI_MCA_coll_base_verbose=1, ~/.openmpi/mca-params.conf" in check.found

    def test_engines_that_do_not_start_are_told(self, monkeypatch, tmp_path):
        (tmp_path / "psutil.py").write_text("raise ImportError('half installed')\n")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        check = look("engines")
        assert check.status == FAILED
        assert "does not start" in check.found and "half installed" in check.found


class TestMachine:
    def usage(self, monkeypatch, free):
        from shutil import _ntuple_diskusage

        monkeypatch.setattr(
            probes.shutil, "disk_usage", lambda path: _ntuple_diskusage(1 << 40, 0, free)
        )

    def test_shared_memory_is_there_and_a_segment_can_be_made(self, around):
        assert probes.shared_memory(around).status == OK

    @pytest.mark.parametrize(
        ("free", "status", "words"),
        [
            (16 << 20, FAILED, "too little for two ranks"),
            (64 << 20, WARNING, "enough for 4 ranks"),
            (1 << 30, OK, "a rank needs up to 16 MiB"),
        ],
    )
    def test_shared_memory_is_counted_in_ranks(self, monkeypatch, around, free, status, words):
        self.usage(monkeypatch, free)
        finding = probes.shared_memory(around)
        assert finding.status == status and words in finding.found
        assert status == OK or "--shm-size" in finding.remedy

    def test_no_shared_memory_and_one_that_takes_nothing_are_told(
        self, monkeypatch, around, tmp_path
    ):
        assert probes.shared_memory(around, str(tmp_path / "gone")).status == MISSING

        def full(*arguments):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(probes.os, "posix_fallocate", full)
        finding = probes.shared_memory(around, str(tmp_path))
        assert finding.status == FAILED and "No space left on device" in finding.found

    def test_one_core_and_a_containers_limit_are_warnings(self, monkeypatch, tmp_path):
        monkeypatch.setattr(probes.os, "sched_getaffinity", lambda pid: {0})
        assert look("cores").status == WARNING
        monkeypatch.setattr(probes.os, "sched_getaffinity", lambda pid: set(range(4)))
        (tmp_path / "cpu.max").write_text("150000 100000\n")
        monkeypatch.setattr(probes, "CPU_MAX", tmp_path / "cpu.max")
        check = look("cores")
        assert check.status == WARNING and "but 1.5 of their time" in check.found
        (tmp_path / "cpu.max").write_text("max 100000\n")
        check = look("cores")
        assert check.status == OK and "sleep for 20 µs" in check.found

    @pytest.mark.parametrize(
        ("free", "status"), [(1 << 20, FAILED), (500 << 20, WARNING), (1 << 40, OK)]
    )
    def test_room_on_the_disk_is_told(self, monkeypatch, free, status):
        self.usage(monkeypatch, free)
        check = look("disk")
        assert check.status == status
        assert status == OK or "TMPDIR" in check.remedy


class TestGrading:
    def test_without_bubblewrap_the_line_to_type_is_told(self, programs):
        check = look("bubblewrap")
        assert check.status == MISSING and "bubblewrap" in check.remedy
        assert "--unsafe-no-sandbox" in check.why

    def test_a_bubblewrap_that_is_too_old_for_the_sandbox_is_failed(self, programs):
        programs(
            "bwrap",
            'case "$*" in *--disable-userns*) '
            "echo 'bwrap: Unknown option --disable-userns' >&2; exit 1;; esac",
        )
        programs("setpriv", 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"')
        check = look("bubblewrap")
        assert check.status == FAILED and "--disable-userns" in check.found
        assert "bubblewrap 0.8 or newer" in check.remedy

    def test_a_bubblewrap_that_makes_no_sandbox_is_failed(self, programs):
        programs("bwrap", "echo 'bwrap: No permissions to create new namespace' >&2; exit 1")
        programs("setpriv", 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"')
        check = look("bubblewrap")
        assert check.status == FAILED and "No permissions" in check.found
        assert "namespaces" in check.remedy or "sysctl" in check.remedy

    @pytest.mark.usefixtures("unhurried")
    def test_bubblewrap_and_the_limits_of_the_grader_are_told(self, require_tool):
        require_tool("bwrap")
        bubblewrap, limits = examine(["bubblewrap", "grading-limits"], progress=False)
        assert bubblewrap.status == OK and "bubblewrap 0." in bubblewrap.found
        assert limits.status in (OK, WARNING) and "bubblewrap, memory" in limits.found
        assert (limits.status == WARNING) == ("watchdog" in limits.found)

    def test_without_a_sandbox_there_are_no_limits(self, programs):
        check = look("grading-limits")
        assert check.status == FAILED and "bwrap: not found" in check.found

    def test_tools_that_emulated_hosts_need_are_named(self, monkeypatch):
        none = Capabilities("none", "not found: tc; ...", missing=("tc",))
        monkeypatch.setattr("mpilab.hosts.emulated.hosts.probe", lambda: none)
        check = look("emulated-hosts")
        assert (check.status, check.found) == (MISSING, "not found: tc")
        assert "iproute2" in check.remedy

    @pytest.mark.parametrize(
        ("found", "status", "words", "remedy"),
        [
            (Capabilities("rootless", tbf=True, netem=True), OK, "latency by netem", ""),
            (Capabilities("root", tbf=True, relay=True), OK, "latency by the relay", ""),
            (Capabilities("root", tbf=True), WARNING, "no latency", "make build"),
            (Capabilities("root", relay=True), WARNING, "no tbf", "modprobe sch_tbf"),
            (Capabilities("none", "unshare: no"), FAILED, "unshare: no", "namespaces"),
        ],
    )
    def test_what_there_is_for_emulated_hosts_is_told(
        self, monkeypatch, found, status, words, remedy
    ):
        monkeypatch.setattr("mpilab.hosts.emulated.hosts.probe", lambda: found)
        check = look("emulated-hosts")
        assert check.status == status and words in check.found and remedy in check.remedy


class TestExtras:
    @pytest.mark.usefixtures("unhurried")
    @pytest.mark.parametrize("folder", ["plain", "für Anna's kit"])
    def test_two_simulated_ranks_run(self, require_tool, tmp_path, monkeypatch, folder):
        require_tool("smpicc")
        (tmp_path / folder).mkdir()
        monkeypatch.setenv("TMPDIR", str(tmp_path / folder))
        monkeypatch.setattr("tempfile.tempdir", None)
        check = look("simgrid")
        assert check.status == OK and "SimGrid version" in check.found

    def test_no_simgrid_names_its_package(self, programs):
        programs("apt-get", "exit 1")
        check = look("simgrid")
        assert (check.status, check.needed) == (MISSING, False)
        assert "libsimgrid-dev" in check.remedy

    def test_a_simgrid_that_does_not_run_is_failed(self, programs):
        programs("smpicc", "exit 0")
        programs("smpirun", "echo 'no platform' >&2; exit 1")
        check = look("simgrid")
        assert check.status == FAILED and "no platform" in check.found

    def test_no_slurm_and_the_mere_programs_are_missing(self, programs):
        assert look("slurm").found == "not installed"
        programs("slurmd", "exit 0")
        check = look("slurm")
        assert check.status == MISSING and check.found == "only slurmd"

    @pytest.mark.parametrize(
        ("sinfo", "status", "words"),
        [
            ("echo 'lab* 3 idle'; echo 'big 1 down'", OK, "3 nodes in big, lab"),
            ("echo 'lab* 2 down'", WARNING, "no node takes jobs: lab* 2 down"),
            ("echo 'Unable to contact slurm controller' >&2; exit 1", FAILED, "Unable to contact"),
        ],
    )
    def test_slurm_is_asked_for_nodes_that_take_jobs(self, programs, sinfo, status, words):
        programs("sbatch", "exit 0")
        programs("sinfo", f'test "$1" = --version && echo "slurm 22.05.8" && exit 0\n{sinfo}')
        check = look("slurm")
        assert check.status == status and words in check.found
        assert "slurm 22.05.8" in check.found

    def test_no_chromium_and_one_that_shows_nothing_are_told(self, programs):
        check = look("chromium")
        assert check.status == MISSING and "no lab needs it" in check.why
        programs("chromium", "echo 'Chromium 100'; echo 'cannot open display' >&2; exit 1")
        check = look("chromium")
        assert check.status == FAILED and "cannot open display" in check.found
        programs("chromium", "echo 'Chromium 100'; echo '<html><p>up</p></html>'")
        check = look("chromium")
        assert check.status == OK and check.found == "Chromium 100, headless"
