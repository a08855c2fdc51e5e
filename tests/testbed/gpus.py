"""Fake GPUs: no machine that runs these tests has real ones.

What stands on this side of the driver is real: device nodes with NVIDIA's numbers, UUIDs, an nvidia-smi that knows
them, a device plugin that the kubelet asks, a container runtime that adds the devices. Behind the nodes is nothing:
opening one fails. CUDA cannot be tested with them; who gets which device can.
"""

import json
import os
import stat
import uuid

from .layout import GPUS, Node

NVIDIA = 195
SHARED = {"nvidiactl": 255, "nvidia-modeset": 254}
NVIDIA_SMI = """\
#!/bin/sh
# Says of the test cluster's fake GPUs what NVIDIA's program says of real ones. Inside a container it sees what
# NVIDIA_VISIBLE_DEVICES names, as NVIDIA's runtime would have it.
gpus='{gpus}'
visible() {{
    case "${{NVIDIA_VISIBLE_DEVICES-all}}" in all) return 0 ;; void | none | '') return 1 ;; esac
    case ",$NVIDIA_VISIBLE_DEVICES," in *",$1,"* | *",$2,"*) return 0 ;; esac
    return 1
}}
each() {{
    for gpu in $gpus; do
        if visible "${{gpu%%=*}}" "${{gpu#*=}}"; then "$1" "${{gpu%%=*}}" "${{gpu#*=}}"; fi
    done
}}
line() {{ echo "GPU $1: NVIDIA Imaginary (UUID: $2)"; }}
csv() {{
    out=
    for field in $(echo "$fields" | tr , ' '); do
        case $field in
            index | minor_number) value=$1 ;;
            uuid | gpu_uuid) value=$2 ;;
            name | gpu_name) value='NVIDIA Imaginary' ;;
            count) value=$(each line | wc -l) ;;
            memory.total) value='81920 MiB' ;;
            memory.used) value='0 MiB' ;;
            utilization.gpu) value='0 %' ;;
            driver_version) value=570.00 ;;
            *) echo "Field \\"$field\\" is not a valid field to query."; exit 2 ;;
        esac
        out="$out${{out:+, }}$value"
    done
    echo "$out"
}}
xml() {{ printf '<gpu id="%s"><uuid>%s</uuid><minor_number>%s</minor_number></gpu>\\n' "$1" "$2" "$1"; }}
fields= action=line header=1
for argument; do
    case $argument in
        -L | --list-gpus) action=line ;;
        --query-gpu=*) action=csv fields=${{argument#*=}} ;;
        --format=*noheader*) header= ;;
        --format=*) ;;
        -q | --query) ;;
        -x | --xml-format) action=xml ;;
        *) echo "The test cluster's nvidia-smi does not know '$argument'." >&2; exit 2 ;;
    esac
done
case $action in
    csv) [ -z "$header" ] || echo "$fields" | sed 's/,/, /g'; each csv ;;
    xml) echo '<nvidia_smi_log>'; each xml; echo '</nvidia_smi_log>' ;;
    *) each line ;;
esac
"""


def gpu_uuid(node: Node, index: int) -> str:
    """The same in every cluster, and another for every GPU: `GPU-00000001-…` is a GPU of kube1."""
    tail = str(uuid.uuid5(uuid.NAMESPACE_OID, f"slurmk8s-testbed/{node.name}/{index}"))[9:]
    return f"GPU-{node.index + 1:07d}{index}-{tail}"


def create(node: Node) -> None:
    """Make the node's devices and what tells of them."""
    folder = node.gpus.parent
    folder.mkdir()
    found = []
    for index in range(GPUS):
        path = folder / f"nvidia{index}"
        _device(str(path), index)
        found.append({"index": index, "uuid": gpu_uuid(node, index), "path": str(path), "healthy": True})
    shared = {}
    for name, minor in SHARED.items():
        _device(str(folder / name), minor)
        shared[f"/dev/{name}"] = str(folder / name)
    inventory = {"gpus": found, "shared": shared, "smi": str(node.nvidia_smi)}
    node.gpus.write_text(json.dumps(inventory, indent=1), encoding="utf-8")
    known = " ".join(f"{gpu['index']}={gpu['uuid']}" for gpu in found)
    _script(str(node.nvidia_smi), NVIDIA_SMI.format(gpus=known))
    # containerd starts it without arguments of ours.
    runtime = node.layout.bin / "nvidia-runtime"
    _script(str(folder / "nvidia-runtime"), f'#!/bin/sh\nexec {runtime} {node.gpus} "$@"\n')


def _device(path: str, minor: int) -> None:
    os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(NVIDIA, minor))
    os.chmod(path, 0o666)


def _script(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, 0o755)
