#!/bin/bash
#SBATCH --job-name=fails-on-purpose
#SBATCH --cpus-per-task=1
#SBATCH --mem=512M
#SBATCH --time=00:05:00
#K8S_IMAGE=nas-hub.local:5407/alpine:latest
#K8S_WORKDIR=/workspace

echo "epoch 1: loss 0.93" | tee -a metrics.txt
echo "epoch 2: loss nan" | tee -a metrics.txt
echo "training diverged" >&2
exit 7
