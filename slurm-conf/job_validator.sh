#!/bin/sh
# Says everything that is wrong with a job file, line by line: job_validator.sh my_job.sh
exec /opt/slurmk8s/bin/slurmk8s check "$@"
