"""What an object file is made of, beside its names: sections, data among the code, assembler.

A C compiler makes few kinds of sections, and puts nothing but functions among the code. Whatever
else there is came in by an attribute, a pragma or assembler: bytes that are run although no
compiler has seen a call in them, code that the loader or the linker runs.
"""

import re

from mpilab import openmpi
from mpilab.build import FLAGS, INCLUDE, run
from mpilab.errors import BuildError

_USUAL = re.compile(
    r"\.text(\.(unlikely|startup|hot|exit))?|\.data(\.rel(\.ro)?(\.local)?)?|\.bss|\.t(data|bss)|"
    r"\.rodata(\.(str\d|cst\d)[.\d]*)?|\.(debug_\w+|comment|eh_frame|llvm_addrsig)|"
    r"\.note\.(GNU-stack|gnu\.property)"
)
# Also with a priority behind the name: .init_array.00101
_RUN_BY_LOADER = re.compile(
    r"\.(init_array|preinit_array|fini_array|ctors|dtors|init|fini)(\.\w+)?"
)
# objdump, wide: number, name, size, two addresses, offset, alignment, flags.
_SECTION = re.compile(r"^ +\d+ (\S+) +(?:[0-9a-f]+ +){4}2\*\*\d+ +(.*)$", re.MULTILINE)
# Value, seven columns of flags of which the last is O for data, section.
_DATA = re.compile(r"^[0-9a-f]+ .{6}O (\S+)\t[0-9a-f]+ (?:\.\w+ )?(.*)$", re.MULTILINE)
COMPILE_SECONDS = 60.0


def oddities(object_file, say):
    """What no compiler makes of plain C: list of sentences, empty if there is nothing.

    `say` runs a command and returns what it printed.
    """
    said = say(["objdump", "--wide", "--section-headers", "--syms", str(object_file)])
    sections = {name: set(flags.split(", ")) for name, flags in _SECTION.findall(said)}
    reasons = [_strange(name) for name in sorted(sections) if not _USUAL.fullmatch(name)]
    if "CODE" in sections.get(".note.GNU-stack", ()):
        reasons.append("it needs a stack that can be run: a function within a function")
    code = {name for name, flags in sections.items() if "CODE" in flags}
    reasons += [f"it has data among its code ({name})" for section, name in _DATA.findall(said)
                if section in code]  # fmt: skip
    return reasons


def _strange(section):
    if _RUN_BY_LOADER.fullmatch(section):
        return f"it has code that runs outside of the kernel (section {section})"
    return f"it puts something into the section {section}"


def has_assembler(c_file, simulated=False):
    """Does C source, once its macros are expanded, hold assembler?

    `simulated`: as it is compiled for a simulation, where other macros are defined. Raises
    BuildError for source that is not there, or that the compiler refuses.
    """
    if not c_file.exists():
        raise BuildError(f"{c_file}: not there, so that nobody can tell what was compiled")
    options = [flag for flag in FLAGS if not flag.startswith("-g")]
    if simulated:
        from mpilab.simulated.build import DIFFERENCES, tool

        options += ["-DSMPI_NO_OVERRIDE_MALLOC", "-include", str(DIFFERENCES)]
        compiler = tool("smpicc")
    else:
        compiler = openmpi.tool("mpicc")
    said = run([compiler, *options, "-w", f"-I{INCLUDE}", "-S", "-o", "-", str(c_file)],
               COMPILE_SECONDS)  # fmt: skip
    if said.returncode != 0:
        raise BuildError(f"{c_file}: {said.stderr.strip()}")
    # The compiler marks what it has not made itself; in a text, a line's end is written \n.
    return re.search(r"^\s*#APP\b", said.stdout, re.MULTILINE) is not None
