#!/bin/bash
# Baseline for measuring, not for use: the guide's job validator (section 3.2), as short as it can be.
# Says what is wrong with a job file and ends with 1, or says nothing.
set -u
job=$1

complain() {
    echo "$1"
    exit 1
}

head -n 1 "$job" | grep -q '^#!' || complain 'the first line is no #! line'
grep -q '^#SBATCH --cpus-per-task=[0-9]\+' "$job" || complain '#SBATCH --cpus-per-task=N is missing'
grep -q '^#SBATCH --mem=[0-9]\+[MG]' "$job" || complain '#SBATCH --mem=XG is missing'
grep -q '^#SBATCH --time=[0-9]\+:[0-9]\+:[0-9]\+' "$job" || complain '#SBATCH --time=HH:MM:SS is missing'
grep -q '^#K8S_IMAGE=nas-hub.local:5407/' "$job" || complain '#K8S_IMAGE is missing or not from nas-hub.local:5407'
