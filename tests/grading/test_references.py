"""Our own kernels get every point of every rubric, whichever variant is chosen."""

import pytest

from mpilab.build import KERNELS, ROOT
from mpilab.exercises import load
from mpilab.judge import judge_exercise, plan
from mpilab.launch import run_cases
from mpilab.rubric import KERNEL
from mpilab.verdict import PASS


def references():
    """(rubric's file, id of the exercise, number of the variant, reference) of all rubrics."""
    for path in sorted((ROOT / "grading").glob("*/rubric.toml")):
        for exercise in load(path).exercises:
            for number, variant in enumerate(exercise.variants or (exercise,)):
                if exercise.kind == KERNEL and variant.reference:
                    yield path, exercise.id, number, variant.reference


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "exercise", "number", "reference"),
    [pytest.param(*each, id=f"{each[0].parent.name}-{each[3]}") for each in references()],
)
def test_a_reference_gets_every_point(path, exercise, number, reference):
    asked = load(path, seed=7).exercise(exercise)
    asked = (asked.variants or (asked,))[number]
    cases, groups = plan(asked)
    function = reference.removesuffix(".c").replace("/", "_")
    verdict = judge_exercise(asked, run_cases(KERNELS, function, cases, groups=groups))
    missed = {item.item: item.reason for item in verdict.items if item.outcome != PASS}
    assert missed == {}
    assert verdict.awarded == asked.points
