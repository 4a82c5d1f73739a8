"""The image of the Dockerfile: built by buildah, and entered as container engines, Binder and hubs
do."""

import json
import re
from pathlib import Path

import container
import pytest
from fresh_system import System

from tests.ci_jobs import PUSHED_BY, github_script, gitlab_script
from tests.conftest import skip

ROOT = Path(__file__).resolve().parents[2]
CLASS = ROOT / "grading" / "sample-class"
KIT = "/opt/mpilab"
START = f"{KIT}/deploy/container/start"
GRADED = ("ada", "dan", "finn")

privileged = [
    pytest.mark.slow,
    pytest.mark.privileged,
    pytest.mark.timeout(2400),
]


@pytest.fixture(scope="module")
def image(able):
    """The name of the image, built from the clone."""
    why = container.why_not()
    if why:
        skip(f"no image on this machine: {why}")
    container.build(ROOT, "mpilab")
    return "mpilab"


@pytest.fixture(scope="module")
def plain(image):
    """A container as engines create it by default: its users cannot create user namespaces."""
    with container.container(image) as made:
        yield made


@pytest.fixture(scope="module")
def privileged_container(image):
    """A container in which user namespaces can be created, as with `docker run --privileged`."""
    path = dict(line.split("=", 1) for line in container.config(image)["Env"])["PATH"]
    with container.container(image) as made, System("bookworm", [made.mounted]) as system:

        def run(command, user="student", **options):
            return system.run(command, user, downloads=False, PATH=path, **options)

        yield run


@pytest.fixture(scope="module")
def hub(image):
    """A container of the image for hubs, which adds a step to the other one, with the user that
    Binder asks for: one build tries both."""
    user = ["--build-arg", "NB_USER=jovyan", "--build-arg", "NB_UID=1234"]
    container.build(ROOT, "mpilab-hub", "--target", "hub", *user)
    with container.container("mpilab-hub") as made:
        yield made


class TestTheImage:
    pytestmark = privileged

    def test_runs_as_a_user_who_cannot_change_the_kit(self, image, plain):
        assert container.config(image)["User"] == "student"
        done = plain.run("sh", "-c", f"id -u; find {KIT} -writable -not -type l | head -3")
        assert done.stdout.split() == ["1000"], done.stdout

    def test_is_smaller_than_a_gigabyte_and_has_no_tools_of_tests(self, image, plain):
        assert container.megabytes(image) < 1000
        done = plain.run("python3", "-m", "pip", "list", "--format=freeze")
        packages = {line.split("==")[0].lower() for line in done.stdout.splitlines()}
        assert "papermill" in packages
        assert not packages & {"pytest", "playwright", "ruff", "clang-format"}

    def test_has_the_kernels_for_simulations_which_each_job_would_compile_otherwise(self, plain):
        done = plain.run("test", "-f", f"{KIT}/build/simulated/mpilab_kernels.so")
        assert done.returncode == 0, done.stdout

    def test_runs_lab_00_in_papermill(self, plain):
        command = [START, "papermill", "00-first-contact.ipynb", "/tmp/00-first-contact.ipynb"]
        done = plain.run(*command)
        assert done.returncode == 0, done.stdout

    def test_refuses_to_grade_where_it_can_isolate_nothing_and_names_the_remedy(self, plain):
        grade = [START, "mpilab", "grade", f"{KIT}/grading/sample-class", "--lab", "02-allgather"]
        done = plain.run(*grade, "--out", "/tmp/grades")
        assert done.returncode != 0
        assert "bubblewrap" in done.stdout
        assert "docker run" in done.stdout, done.stdout
        assert "Traceback" not in done.stdout
        assert plain.run("ls", "/tmp/grades/grades.csv").returncode != 0

    def test_grades_as_a_laptop_does_where_user_namespaces_are_allowed(self, privileged_container):
        names = " ".join(f"{KIT}/grading/sample-class/{name}" for name in GRADED)
        done = privileged_container(
            f"mkdir class && cp -r {names} class/ && {START} mpilab grade ~/class"
            " --lab 02-allgather --out ~/grades && cat ~/grades/grades.csv"
        )
        assert done.returncode == 0, done.stdout
        expected = (CLASS / "expected.csv").read_text(encoding="utf-8").splitlines()
        # The last column says that they were not isolated: clang would add 250 MB.
        rows = [f"{row},yes" for row in expected if row.split(",")[0] in GRADED]
        assert [line for line in done.stdout.splitlines() if line.split(",")[0] in GRADED] == rows

    @pytest.mark.parametrize(
        ("script", "user"), [(github_script, "root"), (gitlab_script, "student")]
    )
    def test_runs_the_job_that_grades_a_push(self, script, user, privileged_container):
        """GitHub's job runs as root, as its options say; GitLab's as the image's user."""
        clone = "/tmp/clone-of-" + user
        notebook = f"{KIT}/grading/sample-class/finn/02-allgather.ipynb"
        done = privileged_container(
            f"mkdir -p {clone}/labs {clone}.temp && cp {notebook} {clone}/labs\n"
            + script(clone, f"{clone}.temp")
            + f"\ngrep -c 'is missing' {clone}/feedback/{PUSHED_BY}.html"
            + f"\n! test -f {clone}.temp/step_summary || cat {clone}.temp/step_summary",
            user,
        )
        assert done.returncode == 0, done.stdout
        assert "55 of 100 points" in done.stdout, done.stdout


class TestWhoStartsIt:
    pytestmark = privileged

    def test_a_hub_of_the_same_version_can_start_its_server(self, hub):
        assert container.config("mpilab-hub")["Cmd"] == ["jupyterhub-singleuser"]
        done = hub.run("jupyterhub-singleuser", "--version")
        assert re.search(r"^5\.\d+", done.stdout, re.M), done.stdout

    def test_binder_finds_jupyterlab_and_the_labs_under_its_own_user(self, hub):
        done = hub.run("sh", "-c", f"id -un; id -u; {START} ls; {START} pwd")
        assert {
            "jovyan",
            "1234",
            "00-first-contact.ipynb",
            "START.ipynb",
            "/home/jovyan/mpilab/labs",
        } <= set(done.stdout.split())
        # Binder looks for JupyterLab with the python3 that is on PATH.
        found = hub.run("python3", "-c", "import jupyterlab.labapp; print('found')")
        assert found.stdout.strip() == "found"


def test_the_dev_container_is_built_from_the_same_dockerfile_for_its_user():
    text = (ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8")
    settings = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.M))
    dockerfile = ROOT / ".devcontainer" / settings["build"]["dockerfile"]
    assert dockerfile.resolve() == ROOT / "Dockerfile"
    user = re.search(r"^ARG NB_USER=(\w+)$", dockerfile.read_text(encoding="utf-8"), re.M)
    assert settings["remoteUser"] == user.group(1)
