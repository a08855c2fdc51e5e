"""The command line of each process of the cluster; those of a node are in node.py."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from . import node
from .layout import Layout
from .processes import PATH

UNREACHABLE_SECONDS = 12
"""How long a node may be silent until it counts as lost: 50 s elsewhere, which no test wants to wait for."""
TOLERATION_SECONDS = 10
"""How long its pods are left alone then: 300 s elsewhere."""


@dataclass(frozen=True)
class Component:
    """A process: how it is started, and where it answers once it is ready."""

    name: str
    command: list[str]
    url: str
    """Answers 200 when it is ready; empty where another process tells."""
    environment: Mapping[str, str] = field(default_factory=dict)


def components(layout: Layout) -> dict[str, Component]:
    """All of them by name, in the order in which they are started."""
    found = [_etcd(layout), _registry(layout), _apiserver(layout)]
    found += [
        Component(f"containerd-{n.name}", node.containerd_command(n), "", _environment(layout)) for n in layout.nodes
    ]
    found += [_controller_manager(layout), _scheduler(layout)]
    for n in layout.nodes:
        environment = {**_environment(layout), "KUBELET_DEVICE_PLUGINS": str(n.device_plugins)}
        url = f"http://{n.address}:10248/healthz"
        found.append(Component(f"kubelet-{n.name}", node.kubelet_command(n), url, environment))
        found.append(Component(f"gpu-plugin-{n.name}", node.gpu_plugin_command(n), "", _environment(layout)))
    found.append(_metrics_server(layout))
    return {component.name: component for component in found}


def _environment(layout: Layout) -> dict[str, str]:
    """Nothing of the caller's: a proxy would be asked for the registry."""
    return {"PATH": f"{layout.bin}:{PATH}", "HOME": str(layout.folder), "LANG": "C.UTF-8"}


def _component(layout: Layout, name: str, url: str, **flags: object) -> Component:
    command = [str(layout.bin / name), *(f"--{key.replace('_', '-')}={value}" for key, value in flags.items())]
    return Component(name, command, url, _environment(layout))


def _etcd(layout: Layout) -> Component:
    url, peer = f"http://{layout.address}:2379", f"http://{layout.address}:2380"
    command = ["/usr/bin/etcd", "--name=testbed", f"--data-dir={layout.folder / 'etcd'}"]
    command += [f"--listen-client-urls={url}", f"--advertise-client-urls={url}"]
    command += [
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=testbed={peer}",
    ]
    # Nobody needs the data after a power cut, and a test's disk is slow.
    command += ["--unsafe-no-fsync", "--logger=zap"]
    return Component("etcd", command, f"{url}/health", _environment(layout))


def _registry(layout: Layout) -> Component:
    command = ["/usr/bin/docker-registry", "serve", str(layout.folder / "registry.yaml")]
    return Component("registry", command, f"http://{layout.registry_address}/v2/", _environment(layout))


def _apiserver(layout: Layout) -> Component:
    pki = layout.pki
    return _component(
        layout,
        "kube-apiserver",
        f"{layout.server}/readyz",
        etcd_servers=f"http://{layout.address}:2379",
        bind_address=layout.address,
        advertise_address=layout.address,
        secure_port=6443,
        cert_dir=pki,
        tls_cert_file=pki / "server.crt",
        tls_private_key_file=pki / "server.key",
        client_ca_file=pki / "ca.crt",
        token_auth_file=pki / "tokens.csv",
        authorization_mode="Node,RBAC",
        enable_admission_plugins="NodeRestriction",
        service_account_issuer="https://kubernetes.default.svc",
        service_account_key_file=pki / "service-accounts.key",
        service_account_signing_key_file=pki / "service-accounts.key",
        service_cluster_ip_range="10.96.0.0/16",
        endpoint_reconciler_type="none",
        kubelet_preferred_address_types="InternalIP",
        kubelet_certificate_authority=pki / "ca.crt",
        kubelet_client_certificate=pki / "to-kubelet.crt",
        kubelet_client_key=pki / "to-kubelet.key",
        # For metrics-server, which answers a part of the API by itself.
        requestheader_client_ca_file=pki / "ca.crt",
        requestheader_allowed_names="front-proxy",
        requestheader_username_headers="X-Remote-User",
        requestheader_group_headers="X-Remote-Group",
        requestheader_extra_headers_prefix="X-Remote-Extra-",
        proxy_client_cert_file=pki / "front-proxy.crt",
        proxy_client_key_file=pki / "front-proxy.key",
        enable_aggregator_routing="true",
        # Asks etcd for something that Debian's is too old for, waits 3 s each time and fills the log.
        feature_gates="SizeBasedListCostEstimate=false",
        default_not_ready_toleration_seconds=TOLERATION_SECONDS,
        default_unreachable_toleration_seconds=TOLERATION_SECONDS,
    )


def _controller_manager(layout: Layout) -> Component:
    return _component(
        layout,
        "kube-controller-manager",
        "",
        bind_address=layout.address,
        cert_dir=layout.pki / "kube-controller-manager",
        leader_elect="false",
        root_ca_file=layout.pki / "ca.crt",
        service_account_private_key_file=layout.pki / "service-accounts.key",
        use_service_account_credentials="true",
        flex_volume_plugin_dir=layout.folder / "volume-plugins",  # it makes the folder
        node_monitor_period="1s",
        node_monitor_grace_period=f"{UNREACHABLE_SECONDS}s",
        **_kubeconfigs(layout, "kube-controller-manager"),
    )


def _scheduler(layout: Layout) -> Component:
    return _component(
        layout,
        "kube-scheduler",
        "",
        bind_address=layout.address,
        cert_dir=layout.pki / "kube-scheduler",
        leader_elect="false",
        **_kubeconfigs(layout, "kube-scheduler"),
    )


def _metrics_server(layout: Layout) -> Component:
    return _component(
        layout,
        "metrics-server",
        "",
        bind_address=layout.address,
        secure_port=4443,
        cert_dir=layout.pki / "metrics-server",
        kubelet_certificate_authority=layout.pki / "ca.crt",
        kubelet_preferred_address_types="InternalIP",
        metric_resolution="10s",  # the shortest it takes
        kubelet_request_timeout="5s",  # must be less than that
        **_kubeconfigs(layout, "metrics-server"),
    )


def _kubeconfigs(layout: Layout, name: str) -> dict[str, object]:
    path = layout.kubeconfig(name)
    return {"kubeconfig": path, "authentication_kubeconfig": path, "authorization_kubeconfig": path}
