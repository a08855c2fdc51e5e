# What a newcomer types: `make demo`, then `make test`. Everything else is a step of these two.
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c

# Not a pyenv shim or a Python in somebody's home: jobs run it as their own user.
PYTHON ?= $(or $(wildcard /usr/bin/python3),python3)
VENV := .venv
# Installing packages, namespaces, mounts and acting as several people need root; making the venv does not.
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)
SOURCES := $(shell find slurmk8s slurm-conf -type f -not -path '*/__pycache__/*') pyproject.toml README.md LICENSE
# The wheel is what is tested, so the checkout must not be found first.
PYTEST := env PYTHONSAFEPATH=1 $(VENV)/bin/python -m pytest
NEEDS := slurmctld slurmd slurm-client slurm-wlm-basic-plugins slurm-wlm-plugins munge \
	podman conmon runc catatonit containernetworking-plugins iptables iproute2 docker-registry \
	busybox-static debootstrap bindfs fuse3 python3-venv util-linux etcd-server openssl \
	slurmdbd mariadb-server-core mariadb-client-core zstd
# hypothesis' own plugin can hide a failed test on Python 3.11; only the unit tests use hypothesis.
REAL := $(SUDO) $(PYTEST) -q -p no:hypothesispytest
TESTBED := $(SUDO) env PYTHONSAFEPATH=1 PYTHONPATH=tests $(VENV)/bin/python -m testbed
KUBE_DIR ?= /var/tmp/slurmk8s-testbed
# What needs no Kubernetes, beside its build; then the rest. The longest first.
FIRST := build-kubernetes test-slurm test-unit test-podman test-nas
# Three clusters at once, and a fourth for a while: a fifth would need more inotify instances than Linux gives by default.
THEN := test-journey-kubernetes test-journey-podman test-kubernetes
ABREAST ?= 3

.PHONY: help deps venv demo test lint $(FIRST) $(THEN) kube-up kube-down bench docs lock clean

help:
	@echo 'make demo    a job file travels from a NAS folder through Slurm into a container and back (KEEP=1 leaves it up)'
	@echo 'make test    lint, types, contracts, unit tests, then real Slurm, podman and Kubernetes'
	@echo 'make kube-up a real Kubernetes with two nodes on this machine, built once (KUBE_DIR); make kube-down removes it'
	@echo 'make venv    $(VENV) with the project installed      make deps    the Debian packages that are missing'
	@echo 'make test-unit, -slurm, -podman, -nas, -kubernetes, -journey-podman, -journey-kubernetes: one part of it'
	@echo 'make lint    ruff, mypy, import contracts           make bench   measurements'
	@echo 'make docs    write docs/commands.md and docs/configuration.md anew'
	@echo 'make lock    resolve the dependencies anew          make clean   remove what was made here'

# Where systemd runs, Debian starts the daemons it installs: munge then runs, slurmctld and slurmd refuse to without
# an /etc/slurm/slurm.conf. Neither is used here or in the way.
deps:
	@command -v dpkg-query >/dev/null || { echo 'make deps: this is not Debian or Ubuntu; see docs/local.md for what is needed.' >&2; exit 1; }
	@missing=$$(comm -23 <(printf '%s\n' $(NEEDS) | sort) \
		<(dpkg-query -W -f '$${Package} $${db:Status-Status}\n' $(NEEDS) 2>/dev/null | sed -n 's/ installed$$//p' | sort)); \
	[ -z "$$missing" ] && exit 0; \
	echo "== installing" $$missing; \
	install() { $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $$missing >/dev/null; }; \
	if apt-cache show $$missing >/dev/null 2>&1 && install 2>/dev/null; then exit 0; fi; \
	$(SUDO) apt-get update -qq && install

venv: $(VENV)/.project

$(VENV)/.dependencies: requirements-dev.lock
	@echo '== making $(VENV) with $(PYTHON)'
	@rm -rf $(VENV)
	@umask 022; $(PYTHON) -m venv $(VENV) || { echo 'make venv: run `make deps` first: python3-venv is missing.' >&2; exit 1; }
	@umask 022; $(VENV)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@touch $@

$(VENV)/.project: $(VENV)/.dependencies $(SOURCES)
	@umask 022; $(VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --force-reinstall .
	@touch $@

demo: deps venv
	@$(SUDO) env KEEP=$(KEEP) PYTHONSAFEPATH=1 $(VENV)/bin/python demo/demo.py

# Each step with its time, so that a slow one is seen.
timed = @echo '== $(1)'; start=$$(date +%s%N); $(2) || { echo '== $(1): FAILED' >&2; exit 1; }; \
	echo "== $(1): $$(( ($$(date +%s%N) - start) / 1000000 )) ms"
# The same with the step's name before each line, since these run side by side.
beside = @start=$$(date +%s); { $(2); } 2>&1 | sed -u 's/^/$(1) | /' || { echo '== $(1): FAILED' >&2; exit 1; }; \
	echo "== $(1): $$(( $$(date +%s) - start )) s"

# Several kinds of tests at once, since each alone leaves the cores idle half of the time; all of them, also after a failure.
test: deps venv lint
	@+for steps in '$(FIRST)' '$(THEN)'; do \
		$(MAKE) --no-print-directory -k -j $(ABREAST) $$steps || failed=1; \
	done; [ -z "$$failed" ]

lint: venv
	$(call timed,ruff,$(VENV)/bin/ruff check --quiet . && $(VENV)/bin/ruff format --quiet --check .)
	$(call timed,mypy,$(VENV)/bin/mypy --no-error-summary)
	$(call timed,import contracts,$(VENV)/bin/lint-imports --no-cache >/dev/null || $(VENV)/bin/lint-imports --no-cache)

test-kubernetes test-journey-kubernetes: build-kubernetes
build-kubernetes: deps venv
	$(call beside,build,$(TESTBED) build)

test-journey-kubernetes: deps venv
	$(call beside,journey on kubernetes,$(REAL) -n 2 --dist loadgroup -k kubernetes tests/e2e)

test-journey-podman: deps venv
	$(call beside,journey on podman,$(REAL) -n 2 --dist loadgroup -k 'not kubernetes' tests/e2e)

test-kubernetes: deps venv
	$(call beside,kubernetes,$(REAL) -n 2 --dist loadfile tests/kube)

test-slurm: deps venv
	$(call beside,slurm,$(REAL) -n 2 --dist loadfile tests/slurm)

test-podman: deps venv
	$(call beside,podman,$(REAL) tests/podman)

test-nas: deps venv
	$(call beside,nas,$(REAL) tests/nas)

# As root too: what one person must not do to another's files takes two persons.
test-unit: venv
	$(call beside,unit,$(SUDO) $(PYTEST) -q -n auto tests/unit)

# The first time it builds Kubernetes, containerd and metrics-server from Go modules: ten minutes on two cores.
kube-up: deps venv
	@$(TESTBED) up --folder $(KUBE_DIR)

kube-down: venv
	@$(TESTBED) down --folder $(KUBE_DIR)

bench: NEEDS += inotify-tools jq  # the guide's own programs, which are measured beside ours
bench: deps venv
	@for script in bench/bench_*.py; do echo "== $$script"; $(SUDO) env PYTHONSAFEPATH=1 $(VENV)/bin/python $$script || exit 1; done

# These two pages are made from the program itself; a unit test tells when they are old.
docs: venv
	@umask 022; export PYTHONSAFEPATH=1; $(VENV)/bin/python -m slurmk8s.cli.docs >docs/.commands.tmp && mv docs/.commands.tmp docs/commands.md
	@umask 022; export PYTHONSAFEPATH=1; $(VENV)/bin/python -m slurmk8s config docs >docs/.configuration.tmp && mv docs/.configuration.tmp docs/configuration.md

# The first file is what a site installs; the second adds what tests and the build need, at the same versions.
lock: $(VENV)/.dependencies
	@flags='--quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --upgrade'; \
	$(VENV)/bin/uv pip compile $$flags pyproject.toml -o requirements.lock; \
	echo hatchling | $(VENV)/bin/uv pip compile $$flags --extra dev -c requirements.lock pyproject.toml - -o requirements-dev.lock

clean:
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +
