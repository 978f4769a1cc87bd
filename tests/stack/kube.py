"""The manifests as `podman kube play` runs them: no API server is to be had."""

import time
from pathlib import Path
from typing import Any

import yaml

from tests.stack.client import Client, text_of
from tests.stack.compose import Checkout
from tests.stack.faults import served_again
from tests.stack.podman import Podman, StackFailed

NOT_PLAYED = (
    "Jobs (the operator's pod is that of the Job's template), Services, NetworkPolicies, autoscalers, "
    "PodDisruptionBudgets, Ingresses, preStop, secrets (Podman 4.3 mounts them encoded; folders of the host)"
)
NETWORK = "ttmark-kube"
REDIS = "redis.redis.svc"
SECRETS = {
    "ttmark": ("kek", "gen.url", "detect.url", "ca.crt", "case.pem", "webhook"),
    "ttmark-operator": ("kek", "operator.url", "ca.crt"),
}


def run(podman: Podman, checkout: Checkout) -> str:
    """Both services, the operator's pod and the live check from their manifests; what was seen."""
    folder = checkout.folder / "deploy/kubernetes"
    objects = _objects(folder / "base") + _objects(folder / "operator")
    typed = checkout.block("Start on Kubernetes", 1).split("kubectl apply")[0]
    checkout.type(typed)
    podman("network", "create", NETWORK, check=False)
    try:
        _start_redis(podman, checkout.folder)
        mounted = checkout.folder / "mounted"
        for name, keys in SECRETS.items():
            _mount(mounted / name, {key: checkout.folder / "secrets" / key for key in keys})
        _play(podman, *_services(objects, mounted), _pod(objects, "operator", mounted))
        _exec(podman, "keys", "create", "main", "--tenant", "acme", "--tokenizer", "demo")
        token = _exec(podman, "tokens", "create", "--tenant", "acme", "--label", "canary").strip()
        client = Client("http://127.0.0.1:8000", lambda: "http://127.0.0.1:8001", token, "demo")
        seconds, unmarked = served_again(client)
        if unmarked:
            raise StackFailed("unmarked text under the manifests")
        verdict = client.verdict(text_of(client.complete(300)))
        return f"a completion and a verdict ({verdict}) {seconds:.0f} s after the key was made"
    finally:
        podman("pod", "rm", "--all", "--force", "--time", "5", check=False)
        podman("rm", "--force", "--time", "5", "ttmark-kube-redis", check=False)
        podman("secret", "rm", "--all", check=False)
        podman("network", "rm", "--force", NETWORK, check=False)


def _objects(folder: Path) -> list[dict[str, Any]]:
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    files = [folder / name for name in kustomization["resources"]]
    return [one for file in files for one in yaml.safe_load_all(file.read_text())]


def _named(objects: list[dict[str, Any]], kind: str, name: str) -> dict[str, Any]:
    return next(one for one in objects if one["kind"] == kind and one["metadata"]["name"] == name)


def _services(objects: list[dict[str, Any]], mounted: Path) -> list[dict[str, Any]]:
    """The config map and both Deployments."""
    files = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "ttmark-files"},
        "data": {"a": "b"},
    }
    deployments = [_named(objects, "Deployment", name) for name in ("generation", "detection")]
    for deployment in deployments:
        _playable(deployment["spec"]["template"]["spec"], mounted)
    return [_named(objects, "ConfigMap", "ttmark"), files, *deployments]


def _pod(objects: list[dict[str, Any]], name: str, mounted: Path) -> dict[str, Any]:
    """The pod that a Job would make."""
    template = _named(objects, "Job", name)["spec"]["template"]
    _playable(template["spec"], mounted)
    labels = template["metadata"]["labels"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": template["spec"],
    }


def _playable(pod: dict[str, Any], mounted: Path) -> None:
    """Says what Kubernetes takes for granted; ports are for loopback, and optional secrets left out."""
    left_out = {one["name"] for one in pod["volumes"] if one.get("secret", {}).get("optional")}
    pod["volumes"] = [one for one in pod["volumes"] if one["name"] not in left_out]
    for volume in pod["volumes"]:
        if secret := volume.pop("secret", None):
            volume["hostPath"] = {"path": str(mounted / secret["secretName"]), "type": "Directory"}
    for container in pod["containers"]:
        container["volumeMounts"] = [
            one for one in container.get("volumeMounts", []) if one["name"] not in left_out
        ]
        container["image"] = f"docker.io/library/{container['image']}:0.1.0"
        container["imagePullPolicy"] = "Never"
        for port in container.get("ports", []):
            port |= {"hostIP": "127.0.0.1", "hostPort": port["containerPort"]}


def _mount(folder: Path, files: dict[str, Path]) -> None:
    """What a pod sees of a secret that was made from files."""
    folder.mkdir(parents=True)
    for key, path in files.items():
        (folder / key).write_bytes(path.read_bytes())
        (folder / key).chmod(0o444)


def _play(podman: Podman, *objects: dict[str, Any]) -> None:
    podman("kube", "play", "--network", NETWORK, "-", text="---\n".join(map(yaml.safe_dump, objects)))


def _start_redis(podman: Podman, folder: Path) -> None:
    """The cluster's Redis, with our configuration and what provision.sh made."""
    podman(
        *("run", "--detach", "--name", "ttmark-kube-redis", "--network", NETWORK, "--network-alias", REDIS),
        *("--volume", f"{folder}/secrets/server:/etc/redis/secrets:ro"),
        *("--volume", f"{folder}/deploy/redis/redis.conf:/etc/redis/redis.conf:ro"),
        *("docker.io/library/redis:8.2.1-alpine", "redis-server", "/etc/redis/redis.conf"),
    )


def _exec(podman: Podman, *command: str) -> str:
    """What a command in the operator's pod prints; the pod may have to come up first."""
    for _ in range(20):
        if podman("ps", "--filter", "name=operator-operator", "--quiet", check=False):
            break
        time.sleep(1)
    return podman("exec", "operator-operator", "ttmark", *command)
