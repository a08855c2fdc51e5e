"""slurmdbd with a MariaDB of its own, for what needs accounts, QOS and limits. Nothing of the system's is used.

Tests take the fixture `accounting_slurm`: the usual private cluster, with `AccountingStorageEnforce` on, where alice
and bob may submit in the account `lab`. It serves whatever needs Slurm's records: `sacct`, `sshare`, AdminComment.
MariaDB listens on a socket in the cluster's folder only, as nobody, and keeps nothing.
"""

import shutil
from pathlib import Path
from typing import Any

QOS = {
    "normal": {},
    "strict": {"flags": "DenyOnLimit"},
    "one": {"MaxSubmitJobsPerUser": "1"},
    "group": {"GrpSubmitJobs": "1"},
    "account": {"MaxSubmitJobsPerAccount": "1"},
}


def slurm_conf(port: int) -> tuple[str, ...]:
    """What slurm.conf says more than that of a cluster without accounts."""
    return (
        "AccountingStorageType=accounting_storage/slurmdbd",
        "AccountingStorageHost=127.0.0.1",
        f"AccountingStoragePort={port}",
        "AccountingStoragePass={folder}/munge/socket",  # munge's socket, for the way to slurmdbd
        "AccountingStorageEnforce=associations,limits,qos",
        "EnforcePartLimits=ALL",
        "PartitionName=drained Nodes=node1 State=DRAIN",
        "PartitionName=inactive Nodes=node1 State=INACTIVE",
    )


def start(slurm: Any, port: int, people: tuple[str, ...]) -> None:
    """MariaDB, slurmdbd, and the cluster's people in them; before slurmctld, which needs them to start."""
    books = Path(slurm.folder) / "books"
    books.mkdir()
    shutil.chown(books, "nobody")
    data = ["--no-defaults", "--user=nobody", f"--datadir={books}/data"]
    slurm.run("mariadb-install-db", *data, "--skip-test-db", "--auth-root-authentication-method=socket")
    small = ["--innodb-buffer-pool-size=32M", "--innodb-log-file-size=8M", "--innodb-flush-log-at-trx-commit=0"]
    files = [f"--socket={books}/socket", f"--pid-file={books}/pid"]
    slurm.start("mariadbd", "mariadbd", *data, *files, *small, "--skip-networking", "--skip-log-bin")
    ask = ("mariadb", "--no-defaults", f"--socket={books}/socket", "--execute=select 'answer'")
    slurm.until(lambda: slurm.run(*ask, check=False).startswith("answer"), "MariaDB answers")
    conf = Path(slurm.folder) / "slurmdbd.conf"
    conf.write_text(
        "AuthType=auth/munge\n"
        f"AuthInfo=socket={slurm.folder}/munge/socket\n"
        "DbdHost=localhost\n"
        "DbdAddr=127.0.0.1\n"
        f"DbdPort={port}\n"
        "SlurmUser=root\n"
        "StorageType=accounting_storage/mysql\n"
        "StorageHost=localhost\n"
        "StorageUser=root\n"
        f"LogFile={slurm.folder}/log/slurmdbd.log\n"
        f"PidFile={slurm.folder}/slurmdbd.pid\n"
    )
    conf.chmod(0o600)  # slurmdbd insists
    # MariaDB's client library takes the socket's path from here: slurmdbd.conf has no word for it.
    slurm.start("slurmdbd", "env", f"MYSQL_UNIX_PORT={books}/socket", "slurmdbd", "-D")
    log = Path(slurm.folder) / "log" / "slurmdbd.log"
    slurm.until(lambda: log.exists() and "started" in log.read_text(), "slurmdbd has started")
    slurm.until(lambda: not slurm.run("sacctmgr", "-n", "show", "cluster", check=False).strip(), "slurmdbd answers")
    change(slurm, "add", "cluster", "bare")
    for name, limits in QOS.items():
        if name != "normal":  # slurmdbd makes that one itself
            change(slurm, "add", "qos", name, *(f"{key}={value}" for key, value in limits.items()))
    change(slurm, "add", "account", "lab", "Description=lab", "Organization=lab")
    for person in people:
        change(slurm, "add", "user", person, "account=lab", f"qos={','.join(QOS)}", "defaultqos=normal")


def change(slurm: Any, *words: str) -> None:
    """One sacctmgr command, without its question; slurmdbd tells slurmctld before it answers."""
    slurm.run("sacctmgr", "--immediate", *words)


def limit(slurm: Any, kind: str, name: str, *values: str) -> None:
    """Set limits of an account or of a person: `limit(slurm, "user", "skt-bob", "MaxSubmitJobs=2")`."""
    change(slurm, "modify", kind, name, "set", *values)


def reset(slurm: Any) -> None:
    """No limit of anybody's own."""
    none = ("MaxSubmitJobs=-1", "GrpSubmitJobs=-1", "MaxTRES=cpu=-1", "MaxWall=-1")
    limit(slurm, "account", "lab", *none)
    change(slurm, "modify", "user", "where", "account=lab", "set", *none)
