"""Labs that have been run, each once for all tests."""

import pytest
from lab_notebook import REDUCED, execute, execute_handed_out


@pytest.fixture(scope="session")
def solved_run(tmp_path_factory):
    """A function: the solved lab after "run all", run once."""
    done = {}

    def of(lab):
        if lab.name not in done:
            folder = tmp_path_factory.mktemp("solved")
            done[lab.name] = execute(lab.solved(), folder, **REDUCED[lab.name])
        return done[lab.name]

    return of


@pytest.fixture(scope="session")
def blank_run(tmp_path_factory):
    """A function: the student version after "run all", in the kit that is handed out."""
    done = {}

    def of(lab):
        if lab.name not in done:
            with pytest.MonkeyPatch.context() as patch:
                done[lab.name] = execute_handed_out(lab, tmp_path_factory.mktemp("blank"), patch)
        return done[lab.name]

    return of
