#!/bin/sh
# Slurm's Epilog (as root, when a job has ended, on every node). A job that we hold no record of is none of ours. For
# the others it returns when the agent has confirmed that the containers are dead and the pod is gone: the next job must
# not meet a busy GPU. If that cannot be confirmed in time it fails, and Slurm drains the node with the log's reason.
python=/opt/slurmk8s/bin/python
set -- /opt/slurmk8s/lib/python3*/site-packages/slurmk8s/hooks # the folder's name holds Python's version
hooks=$1
run_folder=/run/slurmk8s
state_folder=/var/lib/slurmk8s
log_folder=/var/log/slurm-k8s

case $state_folder in
*%n*) state_folder="${state_folder%%%n*}$SLURMD_NODENAME${state_folder#*%n}" ;;
esac
[ -e "$state_folder/hints/$SLURM_JOB_ID" ] || [ -e "$state_folder/jobs/$SLURM_JOB_ID.json" ] || exit 0
exec "$python" -I -S "$hooks/epilog.py" "$run_folder" "$state_folder" "$log_folder"
