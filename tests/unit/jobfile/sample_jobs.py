"""Job files that several tests use."""

GUIDE_3_2_1 = """\
#!/bin/bash
#SBATCH --job-name=작업이름
#SBATCH --partition=gpu
#SBATCH --cpus-per-task=4
#SBATCH --mem=8G
#SBATCH --gres=gpu:1  # GPU 필요시
#SBATCH --time=02:00:00
#SBATCH --output=/mnt/nas/results/%j.out
#SBATCH --error=/mnt/nas/results/%j.err

# K8s 메타데이터 (선택)
#K8S_IMAGE=nas-hub.local:5407/pytorch:2.0-cuda11.8
#K8S_WORKDIR=/workspace
#K8S_SCRIPT=/mnt/nas/scripts/train.py

# 실제 실행 명령어
python /mnt/nas/scripts/train.py
"""

GUIDE_6_2 = """\
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
"""


def job(*lines: str, body: str = "echo hello") -> bytes:
    """A container job with these header lines."""
    return "\n".join(["#!/bin/bash", "#K8S_IMAGE=alpine", *lines, "", body, ""]).encode()
