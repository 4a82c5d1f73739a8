"""Diagnoses to be shown: an ordinary one, and one full of what students' programs may print."""

import dataclasses

from mpilab.diagnosis.model import CRASH, DEADLOCK, KINDS, Diagnosis, Place, Table

DEADLOCKED = Diagnosis(
    DEADLOCK,
    "Ranks 0 and 1 wait for each other in MPI_Recv.",
    pattern="head-to-head receives",
    hint="Let one of them send first, or use MPI_Sendrecv.",
    ranks=(0, 1),
    places=(
        Place(
            14,
            "    MPI_Recv(buffer, count, type, partner, TAG, comm, &status);",
            "ranks 0 and 1 wait here",
            5,
        ),
        Place(16, "    MPI_Send(buffer, count, type, partner, TAG, comm);", "never reached"),
    ),
    cycle=(0, 1),
    tables=(
        Table(
            "What each rank does",
            ("rank", "call", "bytes"),
            ((0, "MPI_Recv", 16), (1, "MPI_Recv", 1024), (2, "finished", "")),
        ),
    ),
    notes=("With 2 ranks it hangs as well.",),
)

SCRIPT = "<script>alert('owned')</script>"
NASTY = Diagnosis(
    CRASH,
    f"{SCRIPT} \"quoted\" 'single' & \x00\x1b[31mred\x1b[0m " + "x" * 5000,
    pattern=SCRIPT,
    hint="<img src=x onerror=\"alert('owned')\">",
    places=(Place(3, SCRIPT + "y" * 500, "</pre></section>", 400, "</strong>" + SCRIPT),),
    tables=(Table(SCRIPT, ("<u>a", "b"), tuple((i, "z" * 400) for i in range(100))),),
    notes=("<style>body{display:none}</style>",) * 50,
    printed=(
        (0, f"</pre>{SCRIPT}\u202egnp\x1b]8;;http://x\x07link\x1b]8;;\x07"),
        (1, "\n".join(f"line {i}" for i in range(1000))),
        *((rank, ("w" * 600 + "\n") * 60) for rank in range(2, 64)),
    ),
    log=f"</pre>{SCRIPT}\n" * 5000,
)

OF_EVERY_KIND = tuple(dataclasses.replace(DEADLOCKED, kind=kind) for kind in KINDS)
