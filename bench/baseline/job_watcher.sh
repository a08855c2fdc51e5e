#!/bin/bash
# Baseline for measuring, not for use: the guide's job watcher (section 3.2.3) with inotifywait.
# Right for files that are written on this machine, by one writer, one at a time, while Slurm answers.
set -u
here=$(dirname "$(readlink -f "$0")")
. "$here/settings.sh"
submit=$NAS/slurm-jobs/submit
processed=$NAS/slurm-jobs/processed
failed=$NAS/slurm-jobs/failed

log() {
    echo "$(date '+%F %T') $*" >>"$LOGS/job_watcher.log"
}

# What Slurm gets: the file's own #SBATCH lines, and a body that waits for the pod. The Prolog lets the pod run the
# file; Slurm would run it a second time on the node itself.
slurms_part() {
    grep '^#' "$1"
    echo ". '$here/settings.sh'"
    echo "exec kubectl wait --namespace \"$NAMESPACES-\$(id -u)\" --for=jsonpath='{.status.phase}'=Succeeded --timeout=24h" \
        '"pod/slurm-job-$SLURM_JOB_ID"'
}

inotifywait --monitor --event close_write --event moved_to --format %f "$submit" |
    while read -r name; do
        if ! reason=$("$here/job_validator.sh" "$submit/$name"); then
            log "$name: $reason"
            mv -- "$submit/$name" "$failed/"
            continue
        fi
        # Before sbatch: the Prolog reads it there, and may do so at once.
        mv -- "$submit/$name" "$processed/"
        if id=$(slurms_part "$processed/$name" | sbatch --parsable --job-name="$name" --chdir="$NAS" \
            --comment="$processed/$name" 2>>"$LOGS/job_watcher.log"); then
            log "$name is job $id"
        else
            mv -- "$processed/$name" "$failed/"
        fi
    done
