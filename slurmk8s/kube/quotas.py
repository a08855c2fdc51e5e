"""A person's quota, from the configuration: as Kubernetes takes it, and as jobs are judged by it."""

from slurmk8s.config import Config, Quota
from slurmk8s.jobfile.facts import Limits
from slurmk8s.kube.quantity import bytes_of

NAME = "user-quota"
"""Of the ResourceQuota, as in the guide."""


def hard(config: Config, user: str) -> dict[str, str]:
    """What a ResourceQuota says.

    The guide's own key `nvidia.com/gpu` is accepted by Kubernetes and never counted; the one that counts is
    `requests.nvidia.com/gpu`.
    """
    quota = config.kubernetes.quota_of(user)
    keys = {
        "requests.cpu": str(quota.cpu or ""),
        "requests.memory": quota.memory if quota.memory and bytes_of(quota.memory) else "",
        f"requests.{config.gpu.resource}": str(quota.gpus or ""),
    }
    return {key: value for key, value in keys.items() if value}


def limits_of(config: Config, user: str | None = None) -> Limits:
    """The same for a judgement; everybody's without a name. Without Kubernetes nobody counts, so there is no limit."""
    if config.backend != "kubernetes":
        return Limits()
    return _limits(config.kubernetes.quota if user is None else config.kubernetes.quota_of(user))


def _limits(quota: Quota) -> Limits:
    memory_mb = bytes_of(quota.memory) >> 20 if quota.memory else 0
    return Limits(quota.cpu or None, memory_mb or None, quota.gpus or None)
