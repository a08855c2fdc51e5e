"""A real Kubernetes on this machine, for tests: two nodes, a registry, and GPUs that are fake since none are here.

API server, scheduler, controller manager and kubelets are Kubernetes' own, built from its Go modules; etcd, runc, the
registry and the CNI plugins are Debian's. Everything lives in one folder and on one private subnet, so that several
clusters can stand side by side and nothing is left of one that goes.

    python -m testbed build | up [--folder F] | down [--folder F]      with tests/ on PYTHONPATH
"""
