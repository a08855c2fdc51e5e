#!/bin/bash
#SBATCH --job-name=test
#SBATCH --cpus-per-task=1
#SBATCH --mem=1G
#SBATCH --time=00:05:00
#SBATCH --output=/mnt/nas/results/test-%j.out
#K8S_IMAGE=nas-hub.local:5407/alpine:latest

echo "Test started at $(date)"
sleep 30
echo "Test completed at $(date)"
