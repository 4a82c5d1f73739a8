#!/bin/bash
# Grade a class on a cluster: a job array that grades it in shares, and a job that merges them.
#
#     slurm/submit-class.sh SUBMISSIONS LAB OUT SHARES [options of 'mpilab grade']
#
# Prints the IDs of both jobs. Partition, account and time limit are those of class.sbatch and
# merge.sbatch; sbatch also takes them from SBATCH_PARTITION, SBATCH_ACCOUNT and SBATCH_TIMELIMIT.
# Started again with the same arguments, it grades only what is missing or has changed.
set -euo pipefail

if [ $# -lt 4 ] || ! [[ $4 =~ ^[1-9][0-9]*$ ]]; then
    echo "usage: $0 SUBMISSIONS LAB OUT SHARES [options of 'mpilab grade']" >&2
    exit 2
fi
submissions=$(realpath -e "$1") lab=$2 out=$(realpath -m "$3") shares=$4
shift 4
here=$(cd "$(dirname "$0")" && pwd)
export MPILAB_KIT=${MPILAB_KIT:-${here%/*}}

mkdir -p "$out/logs"
array=$(sbatch --parsable --array="1-$shares" --output="$out/logs/share-%a.out" \
    "$here/class.sbatch" "$shares" "$submissions" "$lab" "$out" "$@")
merge=$(sbatch --parsable --dependency="afterany:$array" --output="$out/logs/merge.out" \
    "$here/merge.sbatch" "$shares" "$submissions" "$lab" "$out")
echo "shares: job ${array%%;*}"
echo "merge:  job ${merge%%;*}"
echo "result: $out/grades.csv, logs in $out/logs"
