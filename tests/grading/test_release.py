"""The student version of a lab: what is replaced, what is kept, what is rejected."""

import nbformat
import pytest

from mpilab.errors import InputError
from mpilab.grading.release import release, solution_lines, trusted, write_release

LAB = """\
# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     name: python3
# ---

# %% [markdown]
# # Allgather

# %% tags=["parameters"]
ranks = 4

# %% nbgrader={"grade": true, "grade_id": "pairwise", "solution": true, "points": 20}
# %%kernel pairwise
int pairwise(int count, MPI_Comm comm)
{
    int rank, size;
    // BEGIN SOLUTION
    // STUB: (void)count;
    // STUB: return MPI_ERR_OTHER;
    int rank_of_the_partner = rank ^ 1;
    int rank, size;
    return exchange_with(rank_of_the_partner);
    // END SOLUTION
}

# %% nbgrader={"grade": true, "grade_id": "model", "solution": true, "points": 10}
def model(p):
    ### BEGIN SOLUTION
    # STUB: raise NotImplementedError("answer model here")
    return {"rounds": p - 1}
    ### END SOLUTION

# %% [markdown] nbgrader={"grade": true, "grade_id": "why", "solution": true, "points": 5}
# Why?
#
# <!-- BEGIN SOLUTION -->
# Because light travels 30 cm in a nanosecond.
# <!-- END SOLUTION -->

# %%
print(ranks)

# %%
print(ranks)
"""


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "02-allgather.py"
    path.write_text(LAB)
    return path


def cells(notebook):
    return {cell.id: cell for cell in notebook.cells}


def test_a_c_solution_becomes_the_comment_and_the_stub_lines_at_their_indentation(source):
    assert cells(release(source))["pairwise"].source == (
        "%%kernel pairwise\nint pairwise(int count, MPI_Comm comm)\n{\n    int rank, size;\n"
        "    // YOUR CODE HERE\n    (void)count;\n    return MPI_ERR_OTHER;\n}"
    )


def test_a_python_and_a_markdown_solution_get_stubs_of_their_own_kind(source):
    found = cells(release(source))
    assert found["model"].source == (
        'def model(p):\n    # YOUR CODE HERE\n    raise NotImplementedError("answer model here")'
    )
    assert found["why"].source == "Why?\n\nYOUR ANSWER HERE"
    assert found["why"].cell_type == "markdown"


def test_no_solution_line_survives_in_the_student_version(source):
    secret = solution_lines(source)
    assert secret == [
        "Because light travels 30 cm in a nanosecond.",
        "int rank_of_the_partner = rank ^ 1;",
        "return exchange_with(rank_of_the_partner);",
        'return {"rounds": p - 1}',
    ]
    text = "\n".join(cell.source for cell in release(source).cells)
    assert not [line for line in secret if line in text]
    assert "SOLUTION" not in text and "STUB" not in text


def test_the_release_is_valid_has_no_outputs_and_is_the_same_bytes_every_time(source, tmp_path):
    first = write_release(source, tmp_path / "labs" / "a.ipynb").read_bytes()
    second = write_release(source, tmp_path / "labs" / "b.ipynb").read_bytes()
    assert first == second
    assert sorted(path.name for path in (tmp_path / "labs").iterdir()) == ["a.ipynb", "b.ipynb"]
    notebook = nbformat.reads(first.decode(), as_version=4)
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"
    assert all(not cell.get("outputs") for cell in notebook.cells)
    assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)
    assert trusted(source) == release(source)


def test_tags_and_grading_metadata_stay_and_jupytexts_own_go(source):
    notebook = release(source)
    assert notebook.cells[1].metadata == {"tags": ["parameters"]}
    assert cells(notebook)["pairwise"].metadata.nbgrader.points == 20
    assert cells(notebook)["pairwise"].metadata.deletable is False


def test_the_ids_of_other_cells_survive_an_insertion_above_them(source):
    before = [cell.id for cell in release(source).cells]
    source.write_text(LAB.replace("# %% tags", "# %%\nnew = 1\n\n# %% tags"))
    after = [cell.id for cell in release(source).cells]
    assert [cell for cell in after if cell in before] == before


def test_c_that_is_commented_out_to_keep_the_source_python_is_uncommented(source):
    body = LAB.split("# %%kernel pairwise\n")[1].split("\n\n# %%")[0]
    commented = "\n".join(f"# {line}".rstrip() for line in body.splitlines())
    plain = release(source)
    source.write_text(LAB.replace(body, commented))
    assert release(source) == plain


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("    // END SOLUTION\n", "", 19, "has no END SOLUTION"),
        ("    // BEGIN SOLUTION\n", "", 19, "a STUB line outside"),
        (
            '    return {"rounds"',
            '    ### BEGIN SOLUTION\n    return {"rounds"',
            32,
            "inside the solution that began in line 30",
        ),
        (
            "    ### END SOLUTION",
            "    ### END SOLUTION\n    ### END SOLUTION",
            34,
            "without a BEGIN",
        ),
        ("### BEGIN SOLUTION", "### begin solution", 30, "looks like a solution marker"),
        ("### BEGIN SOLUTION", "### BEGIN SOLUTIONS", 30, "looks like a solution marker"),
        ('"grade_id": "model", "solution": true', '"grade_id": "model"', 30, "outside an answer"),
        ('"grade_id": "model"', '"grade_id": "pairwise"', 28, "used twice"),
        (
            '    # STUB: raise NotImplementedError("answer model here")\n',
            "",
            30,
            "not valid Python",
        ),
    ],
)
def test_a_faulty_source_is_refused_with_file_line_and_remedy(source, old, new, line, words):
    assert old in LAB
    source.write_text(LAB.replace(old, new, 1))
    with pytest.raises(InputError, match=words) as refusal:
        release(source)
    assert str(refusal.value).startswith(f"{source}:{line}: ")


def test_an_answer_cell_without_a_name_is_refused(source):
    source.write_text(LAB.replace('"grade_id": "model", ', ""))
    with pytest.raises(InputError, match="has the grade_id None"):
        release(source)


def test_a_broken_jupytext_header_is_an_input_error_and_not_a_traceback(source):
    source.write_text(LAB.replace("#     display_name: Python 3\n", ""))
    with pytest.raises(InputError, match="display_name"):
        release(source)
