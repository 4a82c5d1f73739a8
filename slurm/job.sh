# The common beginning of all jobs in this folder; the scripts source it after their #SBATCH lines.
#
# MPILAB_KIT     the kit's folder; default: where sbatch was called
# MPILAB_SHARED  a folder that all nodes share, for the files of a run; default: the same

set -euo pipefail
kit=$(cd "${MPILAB_KIT:-$SLURM_SUBMIT_DIR}" && pwd)
if [ -x "$kit/.venv/bin/mpilab" ]; then
    PATH=$kit/.venv/bin:$PATH
elif ! command -v mpilab >/dev/null; then
    echo "$kit/.venv: not set up; run 'make setup' there, on a node of this kind" >&2
    exit 1
fi
export MPILAB_KIT=$kit
echo "job $SLURM_JOB_ID: $SLURM_JOB_NUM_NODES nodes ($SLURM_JOB_NODELIST), $(mpilab --version)"
