#!/bin/sh
# Takes the files in slurm-jobs/submit and submits each as its owner's job; started by slurm-job-watcher.service.
exec /opt/slurmk8s/bin/slurmk8s watch "$@"
