"""The C code is formatted, and compiles without a warning with gcc and with clang."""

import subprocess

import pytest

from mpilab.util.kit import ROOT

SRC_C = ROOT / "src_c"


def make(*arguments, **environment):
    import os

    return subprocess.run(
        ["make", "-C", str(SRC_C), *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )


def test_the_c_code_is_formatted():
    said = make("check-format")
    assert said.returncode == 0, said.stderr


def test_what_is_not_formatted_is_found(tmp_path, require_tool):
    (tmp_path / "bad.c").write_text("int   f( void ){return 1 ;}\n")
    (tmp_path / ".clang-format").write_text((ROOT / ".clang-format").read_text())
    program = str(ROOT / ".venv" / "bin" / "clang-format")
    said = subprocess.run([program, "--dry-run", "--Werror", tmp_path / "bad.c"])
    assert said.returncode != 0


@pytest.mark.slow
def test_everything_compiles_with_clang_too_without_a_warning(tmp_path, require_tool):
    # Setup compiles with gcc, which turns each warning into an error.
    said = make("all", f"BUILD={tmp_path}", OMPI_CC=require_tool("clang"))
    assert said.returncode == 0, said.stderr
    assert "warning" not in said.stderr
    for name in ("librecorder.a", "libmpilab_kernels.so", "libmpilab_harness.so", "mpilab-harness"):
        assert (tmp_path / name).exists()
