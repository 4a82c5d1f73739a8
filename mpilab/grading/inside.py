"""The grader's program inside the sandbox: `python -m mpilab.grading.inside VERB`.

It reads job.json in the work directory, removes it, and writes files there. None of them decides a
mark: raw buffers and recordings are judged outside.

    compile   job: {"function", "collective", "allowed", "source", "forms", "check_symbols"}
              writes the files of each form (mpilab.grading.referee.FILES) and compiled.json:
              {"error", "diagnosis", "warning", "forbidden", "doubt"}. "doubt" says why a build
              failed if the answer may not be at fault
    run       job: {"function", "library", "cases": [...], "groups": [...], "limit", "work",
              "most_work", "budget", "standstill"}; needs the library
              writes results/N.json (with a diagnosis in words) and the raw files of case N
    simulate  the same with SimGrid
    execute   job: {"parameters", "cell_seconds"}; needs notebook.ipynb
              writes executed.ipynb
"""

import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mpilab.errors import BuildError, BuildTimeOut, NotOffered
from mpilab.util import faults
from mpilab.util.door import LatePackage
from mpilab.util.processes import hide_memory

# An answer takes three starts of this program, each of which imports only what it needs.
mpilab: Any = LatePackage("mpilab")

WORK = Path()


def main() -> None:
    """Run the verb given on the command line, in the current directory."""
    path = WORK / "job.json"
    job = json.loads(path.read_text(encoding="utf-8"))
    path.unlink()  # the seeds of a run are in the memory of processes that ranks cannot reach
    verbs = {
        "compile": compile_answer,
        "run": run_answer,
        "simulate": simulate_answer,
        "execute": execute_notebook,
    }
    try:
        verbs[sys.argv[1]](job)
    except Exception as error:
        faults.record(error, f"{sys.argv[1]} in the sandbox")
        sys.exit(f"mpilab.grading.inside {sys.argv[1]}: {type(error).__name__}")


def compile_answer(job: dict[str, Any]) -> None:
    """Compile and link a C answer in each of the forms, and check what it uses."""
    said: dict[str, Any] = {
        "error": "",
        "diagnosis": None,
        "warning": None,
        "forbidden": [],
        "doubt": "",
    }
    try:
        built = mpilab.kernels.build.build(job["source"], WORK)
        if built.warnings:
            warned = mpilab.diagnosis.compiler.diagnose_warnings(built.warnings, job["source"])
            said["warning"] = warned and warned.to_json()
        said["forbidden"] = _forbidden(job, built)
        for form in job["forms"]:
            if form != "real" and not said["forbidden"] and not said["doubt"]:
                said.update(_in_jail(job, form) if "jailed" in form else _for_simulation(job))
    except BuildTimeOut as error:
        # A build that never ends reaches its processor time limit first (referee.COMPILE_LIMITS).
        said["doubt"] = str(error)
    except BuildError as error:
        said["error"] = str(error)
        said["diagnosis"] = mpilab.diagnosis.compiler.diagnose_build(error, job["source"]).to_json()
    (WORK / "compiled.json").write_text(json.dumps(said), encoding="utf-8")


def _forbidden(job: dict[str, Any], built: Any, simulated: bool = False) -> list[str]:
    """What speaks against running an answer, as sentences.

    Where a jailed form decides, this only has to find the calls that the exercise does not allow:
    the jail offers nothing else.
    """
    function, allowed, symbols = job["function"], job["allowed"], mpilab.kernels.symbols
    if job["check_symbols"] and not any("jailed" in form for form in job["forms"]):
        return symbols.forbidden(built.object, function, allowed, simulated=simulated)
    reasons = symbols.calls_not_allowed(symbols.used(built.object), allowed)
    if function not in symbols.defined(built.object):
        reasons.append(f"it does not define the function {function}")
    return reasons


def _for_simulation(job: dict[str, Any]) -> dict[str, Any]:
    """Build simulated.so and simulated.run; returns the changes to compiled.json.

    The source may compile differently for the simulation, so its symbols are checked again.
    """
    try:
        built = mpilab.kernels.simgrid.build(job["source"], WORK, stem="simulated", made=True)
    except BuildError as error:
        return {"doubt": f"for the simulation: {error}"}
    return {"forbidden": _forbidden(job, built, simulated=True)}


def _in_jail(job: dict[str, Any], form: str) -> dict[str, Any]:
    """Build FORM.so, and FORM.run for a simulation; returns the changes to compiled.json."""
    source = WORK.resolve() / f"{form}.c"
    source.write_text(f'#line 1 "cell"\n{job["source"]}\n', encoding="utf-8")
    try:
        mpilab.kernels.jail.build_kernel(
            [source],
            job["function"],
            job["collective"],
            source.with_suffix(".so"),
            allowed=job["allowed"],
            simulated="simulated" in form,
        )
    except NotOffered as error:
        return {"forbidden": [str(error)]}
    except BuildError as error:
        return {"doubt": f"in isolation: {error}"}
    return {}


def run_answer(job: dict[str, Any]) -> None:
    """Run the cases with mpirun, and keep the files of each."""
    hide_memory()
    mpilab.runners.mpirun.run_cases(
        WORK.resolve() / job["library"],
        job["function"],
        standstill=job["standstill"],
        work=job["work"],
        confined=WORK.resolve(),
        **_kept(job),
    )


def simulate_answer(job: dict[str, Any]) -> None:
    """Simulate the cases, and keep the files of each."""
    hide_memory()
    mpilab.runners.simgrid.simulate(
        WORK.resolve() / job["library"],
        job["function"],
        standstill=job["standstill"],
        **_kept(job),
    )


def _kept(job: dict[str, Any]) -> dict[str, Any]:
    """The options of a run that keeps the files of each case in results/."""
    outcomes = mpilab.runners.result
    cases = [mpilab.cases.case.Case(**case) for case in job["cases"]]
    numbers = {case: number for number, case in enumerate(cases)}
    results = WORK / "results"
    results.mkdir()
    tempfile.tempdir = str(WORK.resolve())  # same file system, so files are kept by renaming

    def explained(result: Any) -> dict[str, Any] | None:
        """The diagnosis in words; only here are the library and its line numbers available."""
        quiet = result.outcome == outcomes.DONE and not any(
            len(rank.errors) or len(rank.leaked) for rank in result.ranks
        )
        # Wrong buffers are explained outside, where they are compared.
        if quiet or result.outcome in (outcomes.SKIPPED, outcomes.SPENT, outcomes.ERROR):
            return None
        try:
            diagnosis = mpilab.diagnosis.diagnose(result)
        except Exception as error:  # the explanation is optional; the verdict is found outside
            faults.record(error, "explaining a run in the sandbox")
            return None
        return None if diagnosis is None else diagnosis.to_json()

    def keep(result: Any) -> None:
        number = numbers[result.case]
        said = {
            "outcome": result.outcome,
            "crashed": result.crashed,
            "detail": result.detail,
            "states": [asdict(state) for state in result.states],
            "diagnosis": explained(result),
        }
        (results / f"{number}.json").write_text(json.dumps(said), encoding="utf-8")

    return {
        "cases": cases,
        "groups": [tuple(names) for names in job["groups"]],
        "limit": job["limit"],
        "most_work": job["most_work"],
        "budget": job["budget"],
        "on_result": keep,
        "keep": results,
    }


def execute_notebook(job: dict[str, Any]) -> None:
    """Run the notebook with papermill, and write it once, at the end.

    Writing it after every cell, papermill's default, takes longer than running a lab with figures.
    A cell that takes too long is therefore interrupted, and the cells after it still run.
    """
    import papermill  # noqa: PLC0415 (slow, and needed only for this verb)

    papermill.execute_notebook(
        "notebook.ipynb",
        "executed.ipynb",
        job["parameters"],
        kernel_name="python3",
        progress_bar=False,
        request_save_on_cell_execute=False,
        execution_timeout=job["cell_seconds"],
        interrupt_on_timeout=True,
    )


if __name__ == "__main__":
    main()
