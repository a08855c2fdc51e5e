#!/bin/sh
# Slurm's Prolog (as root, at allocation, on every node of a job). Jobs without our word in their comment are left
# alone within a millisecond or two; for ours the node's agent gets a hint, so that the pod is being made while Slurm
# still starts the job. It never waits and never fails: a failing Prolog drains the node, and a waiting one cannot be
# cancelled. Whatever goes wrong here, slurmk8s-run asks the agent again.
python=/opt/slurmk8s/bin/python
set -- /opt/slurmk8s/lib/python3*/site-packages/slurmk8s/hooks # the folder's name holds Python's version
hooks=$1
run_folder=/run/slurmk8s
state_folder=/var/lib/slurmk8s
log_folder=/var/log/slurm-k8s

case " $SLURM_JOB_COMMENT " in
*" slurmk8s "*) "$python" -I -S "$hooks/prolog.py" "$run_folder" "$state_folder" "$log_folder" ;;
esac
exit 0
