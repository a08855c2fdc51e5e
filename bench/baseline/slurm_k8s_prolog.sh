#!/bin/bash
# Baseline for measuring, not for use: the guide's Prolog. It reads the #K8S_ and #SBATCH lines of the job file with
# grep and sed, writes the pod's YAML, and waits until the pod is ready (kubectl apply, kubectl wait).
# Right for a job that came by job_watcher.sh, names an image that exists, and runs for some seconds.
set -u
. "$(dirname "$(readlink -f "$0")")/settings.sh"
exec >>"$LOGS/prolog_$SLURM_JOB_ID.log" 2>&1

job=${SLURM_JOB_COMMENT:-}
case $job in
"$NAS"/slurm-jobs/processed/*) ;;
*) exit 0 ;;
esac

value_of() { # the rest of the first line that begins so
    grep -m 1 "^$1" "$job" | sed "s/^$1//; s/[[:space:]].*//"
}

image=$(value_of '#K8S_IMAGE=')
workdir=$(value_of '#K8S_WORKDIR=')
script=$(value_of '#K8S_SCRIPT=')
cpus=$(value_of '#SBATCH --cpus-per-task=')
memory=$(value_of '#SBATCH --mem=')
gpus=$(value_of '#SBATCH --gres=gpu:')
pod=slurm-job-$SLURM_JOB_ID
namespace=$NAMESPACES-$SLURM_JOB_UID
results=results/$SLURM_JOB_ID
yaml=$(mktemp)
trap 'rm -f "$yaml"' EXIT

mkdir -p "$NAS/$results/outputs"
chown -R "$SLURM_JOB_UID" "$NAS/$results"

cat >"$yaml" <<EOF
apiVersion: v1
kind: Pod
metadata:
  name: $pod
  labels: {app: slurm-job, job-id: "$SLURM_JOB_ID"}
spec:
  nodeName: $NODE
  restartPolicy: Never
  securityContext: {runAsUser: $SLURM_JOB_UID}
  containers:
    - name: job
      image: $image
      command: ["/bin/sh", "${script:-$job}"]
      workingDir: ${workdir:-/workspace}
      env:
        - {name: SLURM_JOB_ID, value: "$SLURM_JOB_ID"}
      resources:
        limits: {cpu: "$cpus", memory: ${memory}i${gpus:+, nvidia.com/gpu: $gpus}}
      volumeMounts:
        - {name: nas, mountPath: $NAS}
        - {name: outputs, mountPath: /workspace}
  volumes:
    - {name: nas, hostPath: {path: $NAS_ON_NODE, type: Directory}}
    - {name: outputs, hostPath: {path: $NAS_ON_NODE/$results/outputs, type: Directory}}
EOF

kubectl apply --filename "$yaml" --namespace "$namespace" || exit 1
kubectl wait --namespace "$namespace" --for=condition=Ready --timeout=300s "pod/$pod" || exit 1
