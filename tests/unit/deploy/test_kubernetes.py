"""The manifests of deploy/kubernetes: against the schemas of the API, and against what they are there for."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

VERSIONS = ("1.28", "1.32", "1.37")
WORKLOADS = ("generation", "detection", "canary")

# What KEDA's reference says of a ScaledObject with Prometheus triggers; Kubernetes' schemas do not have it.
TEXT, COUNT = {"type": "string"}, {"type": "integer", "minimum": 0}
SCALED_OBJECT = {
    "type": "object",
    "additionalProperties": False,
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "properties": {
        "apiVersion": {"const": "keda.sh/v1alpha1"},
        "kind": {"const": "ScaledObject"},
        "metadata": {"type": "object", "required": ["name"]},
        "spec": {
            "type": "object",
            "additionalProperties": False,
            "required": ["scaleTargetRef", "triggers"],
            "properties": {
                "scaleTargetRef": {"type": "object", "required": ["name"], "properties": {"name": TEXT}},
                "minReplicaCount": COUNT,
                "maxReplicaCount": COUNT,
                "pollingInterval": COUNT,
                "cooldownPeriod": COUNT,
                "fallback": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["failureThreshold", "replicas"],
                    "properties": {"failureThreshold": COUNT, "replicas": COUNT},
                },
                "advanced": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {
                        "horizontalPodAutoscalerConfig": {
                            "type": "object",
                            "additionalProperties": False,
                            "properties": {"name": TEXT, "behavior": {"type": "object"}},
                        }
                    },
                },
                "triggers": {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "type": "object",
                        "additionalProperties": False,
                        "required": ["type", "metadata"],
                        "properties": {
                            "type": {"const": "prometheus"},
                            "metadata": {
                                "type": "object",
                                "required": ["serverAddress", "query", "threshold"],
                                "additionalProperties": TEXT,
                            },
                        },
                    },
                },
            },
        },
    },
}


def resources_of(folder: Path) -> Iterator[dict[str, Any]]:
    """The objects of a kustomization's own resource files."""
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    for name in kustomization["resources"]:
        if name.endswith(".yaml"):
            yield from yaml.safe_load_all((folder / name).read_text())


@pytest.fixture(scope="module")
def objects(root: Path) -> list[dict[str, Any]]:
    return list(resources_of(root / "deploy/kubernetes/base"))


def named(objects: list[dict[str, Any]], kind: str, name: str) -> dict[str, Any]:
    return next(o for o in objects if o["kind"] == kind and o["metadata"]["name"] == name)


def container(objects: list[dict[str, Any]], name: str) -> dict[str, Any]:
    found: dict[str, Any] = named(objects, "Deployment", name)["spec"]["template"]["spec"]["containers"][0]
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_follows_the_schema_of_the_api(root: Path, version: str) -> None:
    folder = root / "deploy/kubernetes"
    for part in ("base", "overlays/gpu"):
        for document in resources_of(folder / part):
            if document["kind"] == "ScaledObject":
                jsonschema.validate(document, SCALED_OBJECT)
            else:
                kubernetes_validate.validate(document, version, strict=True)


def test_every_file_is_part_of_its_kustomization(root: Path) -> None:
    for path in (root / "deploy/kubernetes").rglob("kustomization.yaml"):
        document = yaml.safe_load(path.read_text())
        listed = {*document["resources"], *(patch["path"] for patch in document.get("patches", []))}
        files = {file.name for file in path.parent.glob("*.yaml")} - {"kustomization.yaml"}
        assert {name for name in listed if name.endswith(".yaml")} == files


def test_the_patched_overlay_follows_the_schema_too(root: Path) -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is missing; it applies the patches of the overlay")
    command = [kubectl, "kustomize", root / "deploy/kubernetes/overlays/gpu"]
    rendered = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    documents = list(yaml.safe_load_all(rendered))
    for document in documents:
        if document["kind"] != "ScaledObject":
            kubernetes_validate.validate(document, VERSIONS[-1], strict=True)
    generation = container(documents, "generation")
    assert generation["image"] == "ttmark-gen-gpu:0.1.0"
    assert generation["resources"]["limits"]["nvidia.com/gpu"] == "1"


@pytest.mark.parametrize("name", WORKLOADS)
def test_pods_fulfil_the_restricted_standard(objects: list[dict[str, Any]], name: str) -> None:
    pod = named(objects, "Deployment", name)["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    security = container(objects, name)["securityContext"]
    assert security["allowPrivilegeEscalation"] is False
    assert security["readOnlyRootFilesystem"] is True
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert {"requests", "limits"} <= container(objects, name)["resources"].keys()


@pytest.mark.parametrize("name", ["generation", "detection"])
def test_a_pod_drains_before_it_is_killed(objects: list[dict[str, Any]], name: str) -> None:
    pod = named(objects, "Deployment", name)["spec"]["template"]["spec"]
    settings = named(objects, "ConfigMap", "ttmark")["data"]
    pause = int(container(objects, name)["lifecycle"]["preStop"]["exec"]["command"][1])
    drain = float(settings["TTMARK_DRAIN_SECONDS"]) if name == "generation" else 10
    assert pod["terminationGracePeriodSeconds"] > pause + drain
    probes = {probe: container(objects, name)[probe]["httpGet"]["path"] for probe in ("startupProbe",)}
    assert probes == {"startupProbe": "/readyz"}
    assert container(objects, name)["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert container(objects, name)["livenessProbe"]["httpGet"]["path"] == "/healthz"
    rollout = named(objects, "Deployment", name)["spec"]["strategy"]["rollingUpdate"]
    assert rollout == {"maxSurge": 1, "maxUnavailable": 0}


def test_each_service_scales_by_its_own_measure(objects: list[dict[str, Any]]) -> None:
    scaled = named(objects, "ScaledObject", "generation")["spec"]
    assert scaled["scaleTargetRef"]["name"] == "generation"
    assert (
        'ttmark_engine_requests{job="ttmark-gen", state="waiting"}'
        in scaled["triggers"][0]["metadata"]["query"]
    )
    assert "replicas" not in named(objects, "Deployment", "generation")["spec"]
    autoscaler = named(objects, "HorizontalPodAutoscaler", "detection")["spec"]
    assert autoscaler["scaleTargetRef"]["name"] == "detection"
    assert autoscaler["minReplicas"] >= 2
    for name in ("generation", "detection"):
        budget = named(objects, "PodDisruptionBudget", name)["spec"]
        assert budget["selector"]["matchLabels"] == {"app.kubernetes.io/name": name}


def test_the_clusters_prometheus_uses_the_job_names_of_the_rules(root: Path) -> None:
    cluster = yaml.safe_load((root / "deploy/kubernetes/prometheus.yml").read_text())
    compose = yaml.safe_load((root / "deploy/prometheus/prometheus.yml").read_text())
    jobs = [{job["job_name"] for job in file["scrape_configs"]} for file in (cluster, compose)]
    assert jobs[0] == jobs[1] - {"prometheus"}
    names = {rule["regex"] for job in cluster["scrape_configs"] for rule in job["relabel_configs"][:1]}
    assert names == set(WORKLOADS)


def test_traffic_is_denied_unless_it_is_named(objects: list[dict[str, Any]]) -> None:
    policies = [o for o in objects if o["kind"] == "NetworkPolicy"]
    deny = next(o for o in policies if o["metadata"]["name"] == "default-deny")["spec"]
    assert deny == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    selected = {name for o in policies for name in _selected(o["spec"]["podSelector"])}
    assert selected <= set(WORKLOADS)


def _selected(selector: dict[str, Any]) -> list[str]:
    names = [value for expression in selector.get("matchExpressions", []) for value in expression["values"]]
    return names + list(selector.get("matchLabels", {}).values())


def test_secrets_come_from_files_and_each_pod_sees_its_own_alone(objects: list[dict[str, Any]]) -> None:
    assert not [o for o in objects if o["kind"] == "Secret"]
    seen = {}
    for name in WORKLOADS:
        volumes = named(objects, "Deployment", name)["spec"]["template"]["spec"]["volumes"]
        secret = next(volume["secret"] for volume in volumes if volume["name"] == "secrets")
        seen[name] = {item["key"] for item in secret["items"]}
    assert seen == {
        "generation": {"kek", "gen.url", "ca.crt"},
        "detection": {"kek", "detect.url", "ca.crt"},
        "canary": {"canary-token"},
    }
