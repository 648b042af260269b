#!/bin/bash
# A worker on each node of a Slurm job:
#
#     sbatch --nodes=4 examples/cluster/slurm.sh tfeff pretrain --strategy=multi_worker ...
#
# The folder in which this is called, and --run_dir, are on a file system of all nodes.
# A job that was preempted, or that lost a node, is queued again and goes on.
#SBATCH --job-name=tfeff
#SBATCH --ntasks-per-node=1
#SBATCH --requeue
#SBATCH --open-mode=append
set -euo pipefail
port=$((20000 + SLURM_JOB_ID % 10000))
workers=""
for host in $(scontrol show hostnames "$SLURM_JOB_NODELIST"); do
    workers+="$host:$port "
    port=$((port + 1))
done
srun --kill-on-bad-exit=1 \
    sh -c 'exec sh examples/cluster/worker.sh "$SLURM_PROCID" "$0" "$@"' "$workers" "$@" ||
    if [ "${SLURM_RESTART_COUNT:-0}" -lt 20 ]; then
        scontrol requeue "$SLURM_JOB_ID"
    else
        exit 1
    fi
