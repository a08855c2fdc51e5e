"""`slurmk8s mkinst`: a pod by hand, as in the guide. Also installed as `mkinst`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from slurmk8s.config import Config
    from slurmk8s.ops.instance import Instances
    from slurmk8s.pod.manifest import Pod


@click.command()
@click.argument("size")
@click.argument("profile")
@click.argument("person")
@click.option("--job-id", type=click.IntRange(0), help="A number to call it by. Default: the person's name.")
@click.option("--image", help="Image. Default: the profile's.")
@click.option("--cpu", type=click.IntRange(1), help="CPUs. Default: the profile's.")
@click.option("--memory", help="Memory, e.g. 8G, as in a job file. Default: the profile's.")
@click.option("-w", "--node", help="Slurm's name of the node. Default: Kubernetes chooses one.")
@click.option("--wait", default=120, show_default=True, type=click.IntRange(0), help="Seconds to wait until it runs.")
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Credential to use. Default: $KUBECONFIG, else ~/.kube/config.",
)
@click.option("--dry-run", is_flag=True, help="Print the manifest and make nothing.")
@click.option("--delete", is_flag=True, help="Remove it instead.")
def mkinst(
    size: str,
    profile: str,
    person: str,
    job_id: int | None,
    image: str | None,
    cpu: int | None,
    memory: str | None,
    node: str | None,
    wait: int,
    kubeconfig: Path | None,
    *,
    dry_run: bool,
    delete: bool,
) -> None:
    r"""Make a pod by hand for PERSON (a login name, else a uid) to work in, without a job.

    SIZE is gpu1 for one GPU, gpu2 for two, cpu for none. PROFILE is a word of the configuration, such as std.

    \b
    mkinst gpu1 std 2019123456 --job-id 12345 \
      --image nas-hub.local:5407/pytorch:latest --cpu 4 --memory 8G

    The pod has the person's rights, mounts and quota. Slurm does not know of it and goes on counting its CPUs, memory
    and GPUs as free: use nodes that are not Slurm's, or drain one first.
    """
    from slurmk8s.config import load
    from slurmk8s.ops import instance, whom
    from slurmk8s.pod.manifest import render

    config = load()
    instance.require_cluster(config)
    wanted = instance.Wanted(size, profile, whom.account(person), job_id, image, cpu, memory, node)
    if delete:
        _delete(_instances(kubeconfig, config), wanted.name, config.kubernetes.namespace_of(wanted.person.pw_uid))
        return
    pod = instance.pod_of(wanted, config)
    if dry_run:
        click.echo(render(pod), nl=False)
        return
    _create(_instances(kubeconfig, config), pod, wait)


def _instances(kubeconfig: Path | None, config: "Config") -> "Instances":
    from slurmk8s.kube.connection import of_admin
    from slurmk8s.ops.instance import Instances

    kube = of_admin(kubeconfig, config.kubernetes.head_kubeconfig, config.kubernetes.request_seconds)
    return Instances(kube, config)


def _create(instances: "Instances", pod: "Pod", wait: int) -> None:
    instances.create(pod)
    click.echo(f"{pod.name} is made in {pod.namespace}.", err=True)
    if wait:
        node = instances.started(pod, wait, lambda sentence: click.echo(f"slurmk8s: {sentence}", err=True))
        click.echo(f"{pod.name} runs on {node}.", err=True)
    click.echo(f"kubectl exec -it -n {pod.namespace} {pod.name} -- /bin/sh")
    click.echo(
        f"To remove it: the same command with --delete, or kubectl delete pod -n {pod.namespace} {pod.name}", err=True
    )


def _delete(instances: "Instances", name: str, namespace: str) -> None:
    gone = instances.delete(name, namespace)
    click.echo(f"{name} in {namespace} is gone." if gone else f"There is no {name} in {namespace}.", err=True)
