"""The jobs in deploy/ci: their parts, and their shell as GitHub and GitLab run it."""

import shlex
from pathlib import Path

import yaml

CI = Path(__file__).resolve().parents[1] / "deploy" / "ci"
PUSHED_BY = "octo-anna"


def github_job():
    """The workflow for GitHub Classroom, and its only job."""
    workflow = yaml.safe_load((CI / "github-classroom.yml").read_text(encoding="utf-8"))
    (job,) = workflow["jobs"].values()
    return workflow, job


def gitlab_job():
    """The settings of GitLab CI, and its only job."""
    settings = yaml.safe_load((CI / "gitlab-ci.yml").read_text(encoding="utf-8"))
    (job,) = (each for each in settings.values() if "script" in each)
    return settings, job


def github_script(repository, temp):
    """The steps that GitHub runs with 'sh -e', one process each, in the clone `repository`."""
    workflow, job = github_job()
    variables = {
        **workflow["env"],
        "GITHUB_WORKSPACE": repository,
        "GITHUB_ACTOR": PUSHED_BY,
        "GITHUB_STEP_SUMMARY": f"{temp}/step_summary",
        "RUNNER_TEMP": temp,
    }
    steps = [step["run"] for step in job["steps"] if "run" in step]
    return _script(variables, repository, *(f"sh -e -c {shlex.quote(step)}" for step in steps))


def gitlab_script(repository, temp):
    """The lines that GitLab runs in one shell with 'set -e', in the clone `repository`."""
    settings, job = gitlab_job()
    variables = {
        **settings["variables"],
        "CI_PROJECT_DIR": repository,
        "GITLAB_USER_LOGIN": PUSHED_BY,
        "TMPDIR": temp,
    }
    return _script(variables, repository, *job["script"])


def _script(variables, repository, *lines):
    exports = [f"export {name}={shlex.quote(str(value))}" for name, value in variables.items()]
    return "\n".join(["set -e", *exports, f"cd {shlex.quote(str(repository))}", *lines])
