"""A site's own `mkinst`, called in place of making the pod ourselves.

It is called as in the guide: `mkinst gpu1 std alice --job-id 12345 --image … --cpu 4 --memory 8G`. What the guide has
no word for comes otherwise: the manifest that we would have used on standard input, and SLURMK8S_POD,
SLURMK8S_NAMESPACE, SLURMK8S_NODE and KUBECONFIG in the environment. The pod must have that name, namespace and the
manifest's labels, and its container the same name and command: by these the agent finds it, and the job meets it.
"""

import asyncio
from pathlib import Path

from slurmk8s import labels
from slurmk8s.config import Config
from slurmk8s.errors import ClusterFault, NodeFault, SetupError
from slurmk8s.pod.manifest import Pod, render

SECONDS = 120
TRY_AGAIN = 75
"""EX_TEMPFAIL of sysexits.h: the program's way to say that it is not the job's fault and may work later."""
STANDARD = "std"


def profile_of(config: Config, partition: str) -> str:
    """The guide's second word: the profile that belongs to the job's partition, else `std`."""
    named = (
        name for name, profile in config.kubernetes.profiles.items() if partition and profile.partition == partition
    )
    return next(named, STANDARD)


def arguments(program: Path, pod: Pod, profile: str) -> list[str]:
    """The command line, in the guide's order and units."""
    # Set in either mode: for the device plugin's choice, and for the very ones that Slurm chose.
    gpus = len([index for index in pod.environment.get("CUDA_VISIBLE_DEVICES", "").split(",") if index])
    options = {
        "--job-id": pod.labels[labels.JOB_ID],
        "--image": pod.image,
        "--cpu": pod.resources.get("cpu", ""),
        "--memory": _slurms(pod.resources.get("memory", "")),
    }
    given = [word for option, value in options.items() if value for word in (option, value)]
    return [str(program), f"gpu{gpus}" if gpus else "cpu", profile, pod.annotations[labels.USER], *given]


def _slurms(memory: str) -> str:
    """`8192Mi` → `8G`, as the guide writes it."""
    megabytes = int(memory.removesuffix("Mi") or 0)
    return f"{megabytes // 1024}G" if megabytes and megabytes % 1024 == 0 else f"{megabytes}M" if megabytes else ""


def surroundings(pod: Pod, kubeconfig: Path) -> dict[str, str]:
    """The program's environment."""
    return {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG": "C.UTF-8",
        "KUBECONFIG": str(kubeconfig),
        "SLURMK8S_POD": pod.name,
        "SLURMK8S_NAMESPACE": pod.namespace or "",
        "SLURMK8S_NODE": pod.node or "",
    }


def not_made(config: Config, pod: Pod) -> SetupError:
    """It ended well, but the pod cannot be found."""
    return SetupError(
        f"The site's mkinst {config.kubernetes.mkinst} ended well, but there is no pod {pod.name} in {pod.namespace} "
        "with the labels it was given.",
        "It must make the pod with the name, namespace and labels of the manifest on its standard input.",
    )


async def call(config: Config, pod: Pod, kubeconfig: Path, seconds: float = SECONDS) -> None:
    """Have the site's program make the pod; a fault in its own last words if it does not."""
    program = config.kubernetes.mkinst
    assert program is not None
    profile = profile_of(config, pod.annotations.get(labels.PARTITION, ""))
    try:
        process = await asyncio.create_subprocess_exec(
            *arguments(program, pod, profile),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=surroundings(pod, kubeconfig),
            cwd="/",
            start_new_session=True,
        )
    except OSError as error:
        raise NodeFault(
            f"The site's mkinst {program} cannot be run: {error.strerror}.", "Correct kubernetes.mkinst, or install it."
        ) from None
    try:
        async with asyncio.timeout(seconds):
            said, _ = await process.communicate(render(pod).encode())
    except TimeoutError:
        raise ClusterFault(f"The site's mkinst {program} did not end within {seconds:g} s.") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode == 0:
        return
    words = said.decode("utf-8", "replace").strip().rpartition("\n")[2].strip().rstrip(".") or "it gave no reason"
    sentence = f"The site's mkinst {program} failed with status {process.returncode}: {words}."
    if process.returncode == TRY_AGAIN:
        raise ClusterFault(sentence)
    raise SetupError(sentence, "Ask your administrator.")
