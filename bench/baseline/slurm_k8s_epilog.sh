#!/bin/bash
# Baseline for measuring, not for use: the guide's Epilog (sections 3.5 and 4.4). It brings the logs to the results
# folder, writes a summary and checksums, and deletes the pod.
# Right for a job whose pod came up; kubectl gives stdout and stderr as one.
set -u
. "$(dirname "$(readlink -f "$0")")/settings.sh"
exec >>"$LOGS/epilog_$SLURM_JOB_ID.log" 2>&1

case ${SLURM_JOB_COMMENT:-} in
"$NAS"/slurm-jobs/processed/*) ;;
*) exit 0 ;;
esac

pod=slurm-job-$SLURM_JOB_ID
namespace=$NAMESPACES-$SLURM_JOB_UID
cd "$NAS/results/$SLURM_JOB_ID" || exit 1

kubectl logs --namespace "$namespace" "$pod" >stdout.log
: >stderr.log
kubectl get pod --namespace "$namespace" "$pod" --output json | jq --raw-output '
    .spec.containers[0].image as $image | .status.containerStatuses[0].state.terminated as $end |
    "Job ID:    \(.metadata.labels["job-id"])",
    "Image:     \($image)",
    "Node:      \(.spec.nodeName)",
    "State:     \(.status.phase)",
    "Exit code: \($end.exitCode // "unknown")",
    "Started:   \($end.startedAt // "unknown")",
    "Ended:     \($end.finishedAt // "unknown")"' >job_summary.txt
find . -type f ! -name checksums.txt -exec sha256sum {} + >checksums.txt
chown -R "$SLURM_JOB_UID" .

kubectl delete pod --namespace "$namespace" "$pod" --ignore-not-found
