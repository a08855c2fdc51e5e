"""The whole system on one workstation: a private Slurm, registry, agent and watcher under one folder.

Everything runs below one supervisor, PID 1 of its own PID, mount and cgroup namespaces: when it ends, however it ends,
the kernel ends every process and mount with it. Nothing here takes part in a job's journey; it starts those who do.
"""
