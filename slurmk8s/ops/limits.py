"""The many limits of Slurm's accounting, told by the parts of their names: `QOSMaxGRESPerUser`, `AssocGrpCpuLimit`."""

import re

from slurmk8s.ops.waiting import SUBMIT_AGAIN, Told, Waiting, asked
from slurmk8s.results.summary_text import printable

_LIMIT = re.compile(
    r"(?P<whose>QOS|Assoc|)(?P<kind>Grp|Max|Min)"
    r"(?P<what>BB|Billing|CPU|Cpu|Energy|GRES|Jobs?|License|Memory|Mem|Node|SubmitJobs?|Unknown|WallDuration|Wall)"
    r"(?P<minutes>RunMinutes|Minutes)?(?P<per>PerJob|PerNode|PerUser|PerAccount)?(?:Limit|NotSatisfied)?"
)
_COUNTED = {
    "BB": "bytes of burst buffer",
    "Billing": "billing units",
    "CPU": "CPUs",
    "Cpu": "CPUs",
    "Energy": "units of energy",
    "GRES": "GPUs or other devices",
    "Job": "running jobs",
    "Jobs": "running jobs",
    "License": "licences",
    "Mem": "bytes of memory",
    "Memory": "bytes of memory",
    "Node": "nodes",
    "SubmitJob": "jobs in the queue",
    "SubmitJobs": "jobs in the queue",
    "Unknown": "resources",
    "Wall": "hours",
    "WallDuration": "hours",
}


def told(word: str, waiting: Waiting) -> Told | None:
    """What Slurm's word means; None if it is no limit."""
    match = _LIMIT.fullmatch(word)
    if match is None:
        return None
    whose = {"QOS": "its QOS", "Assoc": "its account", "": "its account"}[match["whose"] or ""]
    if match["whose"] == "QOS" and waiting.seen.qos:
        whose += f" {printable(waiting.seen.qos)}"
    elif match["whose"] != "QOS" and waiting.seen.job.account:
        whose += f" {printable(waiting.seen.job.account)}"
    what = _COUNTED.get(match["what"], match["what"])
    if match["minutes"]:
        what = f"{what.removesuffix('s')}-minutes" + (" of running jobs" if match["minutes"].startswith("Run") else "")
    if match["kind"] == "Min":
        return Told(f"it asks for fewer {what} than {whose} demands ({asked(waiting.seen)})", SUBMIT_AGAIN)
    per = {"PerJob": "one job", "PerNode": "one node", "PerUser": "one person", "PerAccount": "one account"}
    if match["per"] in ("PerJob", "PerNode"):
        clause = f"it asks for more {what} than {whose} lets {per[match['per']]} have ({asked(waiting.seen)})"
        return Told(clause, SUBMIT_AGAIN)
    who = per.get(match["per"] or "", "all its jobs together" if match["kind"] == "Grp" else "one person")
    clause = f"{whose} lets {who} have only so many {what} at a time, and that many are in use"
    if match["minutes"] and not match["minutes"].startswith("Run"):
        clause = f"{whose} has used up its {what}"
    flag = f"flags=qos qos={waiting.seen.qos}" if match["whose"] == "QOS" and waiting.seen.qos else "flags=assoc"
    return Told(clause, f"It starts by itself when others end; `scontrol show assoc_mgr {flag}` shows the limits.")
