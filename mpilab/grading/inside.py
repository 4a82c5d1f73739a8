"""What runs inside the sandbox on the referee's behalf: `python -m mpilab.grading.inside VERB`.

It reads job.json in the work directory and leaves files there. Nothing it says decides a mark by
itself: buffers and recordings come out raw and are judged outside.

    compile   job: {"function", "allowed", "source", "simulated"}
              leaves kernel.o, kernel.so and compiled.json:
              {"error", "diagnosis", "warning", "forbidden", "doubt"}; if it is to be simulated as
              well, simulated.so and simulated.run. "doubt" says why something could not be built
              where that may be no fault of the answer's
    run       job: {"function", "cases": [...], "groups": [...], "limit", "work",
              "standstill"}; needs kernel.so
              leaves results/N.json (with a diagnosis in words) and the raw files of case N
    simulate  the same with SimGrid; needs simulated.so and simulated.run
    execute   job: {"parameters", "cell_seconds"}; needs notebook.ipynb
              leaves executed.ipynb
"""

import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

WORK = Path(".")


def main():
    """Do what the command line says, in the current directory."""
    job = json.loads((WORK / "job.json").read_text(encoding="utf-8"))
    verbs = {"compile": compile_answer, "run": run_answer, "simulate": simulate_answer,
             "execute": execute_notebook}  # fmt: skip
    verbs[sys.argv[1]](job)


def compile_answer(job):
    """Compile and link a C answer, and look at the symbols that it uses."""
    from mpilab.build import build
    from mpilab.diagnosis import slips
    from mpilab.errors import BuildError, BuildTimeOut
    from mpilab.symbols import forbidden

    said = {"error": "", "diagnosis": None, "warning": None, "forbidden": [], "doubt": ""}
    try:
        built = build(job["source"], WORK)
        warned = slips.diagnose_warnings(built.warnings, job["source"])
        said["warning"] = warned and warned.as_json()
        said["forbidden"] = forbidden(built.object, job["function"], job["allowed"])
        if job["simulated"] and not said["forbidden"]:
            said.update(_for_simulation(job))
    except BuildTimeOut as error:
        # What never ends has met its limit of processor time before (trials.COMPILE_LIMITS).
        said["doubt"] = str(error)
    except BuildError as error:
        said["error"] = str(error)
        said["diagnosis"] = slips.diagnose_build(error, job["source"]).as_json()
    (WORK / "compiled.json").write_text(json.dumps(said), encoding="utf-8")


def _for_simulation(job):
    """Build simulated.so and simulated.run; what is to be said of that. A source may be compiled to
    something else there, so its symbols are looked at, too."""
    from mpilab.errors import BuildError
    from mpilab.simulated.build import build
    from mpilab.symbols import forbidden

    try:
        built = build(job["source"], WORK, stem="simulated", made=True)
    except BuildError as error:
        return {"doubt": f"for the simulation: {error}"}
    return {"forbidden": forbidden(built.object, job["function"], job["allowed"], simulated=True)}


def run_answer(job):
    """Run the cases with mpirun, and keep what each left."""
    from mpilab.launch import run_cases

    run_cases(WORK.resolve() / "kernel.so", job["function"], standstill=job["standstill"],
              work=job["work"], **_kept(job))  # fmt: skip


def simulate_answer(job):
    """Simulate the cases, and keep what each left."""
    from mpilab.simulated.run import simulate

    simulate(WORK.resolve() / "simulated.so", job["function"], standstill=job["standstill"],
             **_kept(job))  # fmt: skip


def _kept(job):
    """The options of a run that keeps in results/ what each case left."""
    from mpilab.diagnosis import diagnose
    from mpilab.diagnosis.model import ERROR as UNEXPLAINED
    from mpilab.diagnosis.model import Diagnosis
    from mpilab.harness import Case
    from mpilab.result import DONE, ERROR, SKIPPED

    cases = [Case(**case) for case in job["cases"]]
    numbers = {case: number for number, case in enumerate(cases)}
    results = WORK / "results"
    results.mkdir()
    tempfile.tempdir = str(WORK.resolve())  # there a file is kept by renaming it

    def explained(result):
        """The diagnosis in words: only here are the library and its lines at hand."""
        quiet = result.outcome == DONE and not any(
            len(rank.errors) or len(rank.leaked) for rank in result.ranks
        )
        # Wrong buffers are explained outside, where they are compared.
        if quiet or result.outcome in (SKIPPED, ERROR):
            return None
        try:
            diagnosis = diagnose(result)
        except Exception as error:  # an explanation is an extra; what decides is found outside
            return Diagnosis(UNEXPLAINED, f"{type(error).__name__}: {error}").as_json()
        return diagnosis and diagnosis.as_json()

    def keep(result):
        number = numbers[result.case]
        said = {
            "outcome": result.outcome, "crashed": result.crashed, "detail": result.detail,
            "states": [asdict(state) for state in result.states],
            "diagnosis": explained(result),
        }  # fmt: skip
        (results / f"{number}.json").write_text(json.dumps(said), encoding="utf-8")

    return {"cases": cases, "groups": [tuple(names) for names in job["groups"]],
            "limit": job["limit"], "on_result": keep, "keep": results}  # fmt: skip


def execute_notebook(job):
    """Run the notebook with papermill, which writes it once, at the end.

    Writing it after every cell, papermill's default, takes longer than running a lab with figures.
    So a cell that takes too long is interrupted, and the ones after it still run.
    """
    import papermill

    papermill.execute_notebook(
        "notebook.ipynb", "executed.ipynb", job["parameters"], kernel_name="python3",
        progress_bar=False, request_save_on_cell_execute=False,
        execution_timeout=job["cell_seconds"], interrupt_on_timeout=True)  # fmt: skip


if __name__ == "__main__":
    main()
