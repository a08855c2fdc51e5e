# Sourced by the scripts of the baseline: where things are, as in the guide. The bench puts a copy with its own values
# beside its copies of the scripts.
NAS=/mnt/nas
NAS_ON_NODE=$NAS          # the same folder by the path that the kubelet sees
NODE=$(hostname -s)       # Kubernetes' name of this node
NAMESPACES=user           # of user 1000: user-1000
LOGS=/var/log/slurm-k8s
export KUBECONFIG=/etc/kubernetes/admin.conf
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
