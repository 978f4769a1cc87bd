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
OVERLAYS = ("gpu", "vllm", "vllm-multi-node")


def closed(*required: str, **properties: Any) -> dict[str, Any]:
    """The schema of an object with these properties and no others."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": [*required],
        "properties": properties,
    }


def of_kind(version: str, kind: str, **spec: Any) -> dict[str, Any]:
    """The schema of an object of the API, of which three parts are required where they belong."""
    required = [name for name in ("scaleTargetRef", "triggers", "leaderWorkerTemplate") if name in spec]
    return closed(
        *("apiVersion", "kind", "metadata", "spec"),
        apiVersion={"const": version},
        kind={"const": kind},
        metadata={"type": "object", "required": ["name"]},
        spec=closed(*required, **spec),
    )


# What KEDA's reference says of a ScaledObject with Prometheus triggers; Kubernetes' schemas do not have it.
TEXT, COUNT, ANY = {"type": "string"}, {"type": "integer", "minimum": 0}, {"type": "object"}
TRIGGER = ANY | {"required": ["serverAddress", "query", "threshold"], "additionalProperties": TEXT}
SCALED_OBJECT = of_kind(
    "keda.sh/v1alpha1",
    "ScaledObject",
    scaleTargetRef=ANY | {"required": ["name"], "properties": {"name": TEXT}},
    minReplicaCount=COUNT,
    maxReplicaCount=COUNT,
    pollingInterval=COUNT,
    cooldownPeriod=COUNT,
    fallback=closed("failureThreshold", "replicas", failureThreshold=COUNT, replicas=COUNT),
    advanced=closed(horizontalPodAutoscalerConfig=closed(name=TEXT, behavior=ANY)),
    triggers={
        "type": "array",
        "minItems": 1,
        "items": closed("type", "metadata", type={"const": "prometheus"}, metadata=TRIGGER),
    },
)


LEADER_WORKER_SET = of_kind(
    "leaderworkerset.x-k8s.io/v1",
    "LeaderWorkerSet",
    startupPolicy={"enum": ["LeaderCreated", "LeaderReady"]},
    networkConfig=closed(subdomainPolicy={"enum": ["Shared", "UniquePerReplica"]}),
    rolloutStrategy=closed(
        "type",
        type={"const": "RollingUpdate"},
        rollingUpdateConfiguration=closed(maxUnavailable=COUNT, maxSurge=COUNT),
    ),
    leaderWorkerTemplate=closed(
        *("size", "workerTemplate"),
        size={"type": "integer", "minimum": 1},
        restartPolicy={"enum": ["RecreateGroupOnPodRestart", "None"]},
        leaderTemplate=ANY,
        workerTemplate=ANY,
    ),
)


def validate(document: dict[str, Any], version: str) -> None:
    """Against the API of a Kubernetes version, or what is known of KEDA's and LeaderWorkerSet's."""
    if document["kind"] == "ScaledObject":
        jsonschema.validate(document, SCALED_OBJECT)
    elif document["kind"] == "LeaderWorkerSet":
        jsonschema.validate(document, LEADER_WORKER_SET)
        pod = {"apiVersion": "v1", "kind": "PodTemplate"}
        for name, template in templates(document).items():
            pod |= {"metadata": {"name": name}, "template": template}
            kubernetes_validate.validate(pod, version, strict=True)
    else:
        kubernetes_validate.validate(document, version, strict=True)


def templates(group: dict[str, Any]) -> dict[str, dict[str, Any]]:
    template = group["spec"]["leaderWorkerTemplate"]
    return {"leader": template["leaderTemplate"], "worker": template["workerTemplate"]}


def resources_of(folder: Path) -> Iterator[dict[str, Any]]:
    """The objects of a kustomization's own resource files."""
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    for name in kustomization["resources"]:
        if name.endswith(".yaml"):
            yield from yaml.safe_load_all((folder / name).read_text())


@pytest.fixture(scope="module")
def objects(root: Path) -> list[dict[str, Any]]:
    return list(resources_of(root / "deploy/kubernetes/base"))


@pytest.fixture(scope="module")
def operator(root: Path) -> list[dict[str, Any]]:
    return list(resources_of(root / "deploy/kubernetes/operator"))


def named(objects: list[dict[str, Any]], kind: str, name: str) -> dict[str, Any]:
    return next(o for o in objects if o["kind"] == kind and o["metadata"]["name"] == name)


def container(objects: list[dict[str, Any]], name: str) -> dict[str, Any]:
    found: dict[str, Any] = named(objects, "Deployment", name)["spec"]["template"]["spec"]["containers"][0]
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_follows_the_schema_of_the_api(root: Path, version: str) -> None:
    folder = root / "deploy/kubernetes"
    for part in ("base", "operator", *(f"overlays/{name}" for name in OVERLAYS)):
        for document in resources_of(folder / part):
            validate(document, version)


def test_every_file_is_part_of_its_kustomization(root: Path) -> None:
    for path in (root / "deploy/kubernetes").rglob("kustomization.yaml"):
        document = yaml.safe_load(path.read_text())
        listed = {*document["resources"], *(patch["path"] for patch in document.get("patches", []))}
        listed |= {name for made in document.get("configMapGenerator", []) for name in made["files"]}
        listed |= set(document.get("configurations", []))
        files = {file.name for file in path.parent.glob("*.yaml")} - {"kustomization.yaml"}
        assert {name for name in listed if name.endswith(".yaml")} == files


@pytest.fixture(scope="module")
def overlays(root: Path) -> dict[str, list[dict[str, Any]]]:
    """The objects of each overlay with its patches."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is missing; it applies the patches of the overlays")
    rendered = {}
    for name in OVERLAYS:
        command = [kubectl, "kustomize", root / "deploy/kubernetes/overlays" / name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        rendered[name] = list(yaml.safe_load_all(done.stdout))
    return rendered


@pytest.mark.parametrize("name", OVERLAYS)
def test_the_patched_overlays_follow_the_schema_too(overlays, name):
    for document in overlays[name]:
        validate(document, VERSIONS[-1])


@pytest.mark.parametrize(
    ("name", "image", "gpus"), [("gpu", "ttmark-gen-gpu", 1), ("vllm", "ttmark-gen-vllm", 4)]
)
def test_an_overlay_brings_its_image_and_its_gpus(overlays, name, image, gpus):
    generation = container(overlays[name], "generation")
    assert generation["image"] == f"{image}:0.1.0"
    assert generation["resources"]["limits"]["nvidia.com/gpu"] == str(gpus)


def engine_arguments(documents: list[dict[str, Any]], pod: dict[str, Any]) -> dict[str, Any]:
    """vLLM's arguments in the config map that a pod mounts."""
    (name,) = {volume["configMap"]["name"] for volume in pod["volumes"] if volume["name"] == "engine"}
    arguments: dict[str, Any] = yaml.safe_load(named(documents, "ConfigMap", name)["data"]["engine.yaml"])
    return arguments


def test_vllm_spreads_a_model_over_the_gpus_of_its_pod(overlays: dict[str, list[dict[str, Any]]]) -> None:
    documents = overlays["vllm"]
    pod = named(documents, "Deployment", "generation")["spec"]["template"]["spec"]
    gpus = pod["containers"][0]["resources"]["limits"]["nvidia.com/gpu"]
    assert engine_arguments(documents, pod)["tensor_parallel_size"] == int(gpus)
    assert {"/etc/ttmark", "/cache", "/dev/shm", "/state", "/run/secrets/ttmark"} <= mounts(pod)
    scaled = named(documents, "ScaledObject", "generation")["spec"]
    assert scaled["cooldownPeriod"] == 1800
    assert 'state="waiting"' in scaled["triggers"][0]["metadata"]["query"]


def test_a_group_of_pods_takes_the_place_of_the_deployment(overlays: dict[str, list[dict[str, Any]]]) -> None:
    documents = overlays["vllm-multi-node"]
    assert not [o for o in documents if o["kind"] == "Deployment" and o["metadata"]["name"] == "generation"]
    group = named(documents, "LeaderWorkerSet", "generation")
    target = named(documents, "ScaledObject", "generation")["spec"]["scaleTargetRef"]
    assert (target["kind"], target["name"]) == ("LeaderWorkerSet", "generation")
    assert "replicas" not in group["spec"]
    pods = {name: template["spec"] for name, template in templates(group).items()}
    gpus = {int(pod["containers"][0]["resources"]["limits"]["nvidia.com/gpu"]) for pod in pods.values()}
    arguments = engine_arguments(documents, pods["leader"])
    size = group["spec"]["leaderWorkerTemplate"]["size"]
    assert [size * each for each in gpus] == [arguments["tensor_parallel_size"]]
    assert arguments["distributed_executor_backend"] == "ray"
    assert {pod["containers"][0]["image"] for pod in pods.values()} == {"ttmark-gen-vllm:0.1.0"}
    for pod in pods.values():  # workers are told the leader's folder of the model
        assert "/models" in mounts(pod)
        assert {"name": "models", "persistentVolumeClaim": {"claimName": "ttmark-models"}} in pod["volumes"]


def test_only_the_leader_of_a_group_is_asked_and_has_the_secrets_of_the_service(overlays):
    documents = overlays["vllm-multi-node"]
    group = templates(named(documents, "LeaderWorkerSet", "generation"))
    selector = named(documents, "Service", "generation")["spec"]["selector"]
    name = "app.kubernetes.io/name"
    assert group["leader"]["metadata"]["labels"][name] == selector[name]
    assert group["worker"]["metadata"]["labels"][name] != selector[name]
    volumes = {role: each["spec"]["volumes"] for role, each in group.items()}
    secrets = {
        role: {item["key"] for volume in seen for item in volume.get("secret", {}).get("items", [])}
        for role, seen in volumes.items()
    }
    assert secrets == {"leader": {"kek", "gen.url", "ca.crt", "ray-token"}, "worker": {"ray-token"}}
    for each in group.values():
        environment = {entry["name"]: entry.get("value") for entry in each["spec"]["containers"][0]["env"]}
        assert environment["RAY_AUTH_MODE"] == "token"
        assert restricted(each["spec"])
    leader = group["leader"]["spec"]
    pause = int(leader["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][1])
    settings = named(documents, "ConfigMap", "ttmark")["data"]
    assert leader["terminationGracePeriodSeconds"] > pause + float(settings["TTMARK_DRAIN_SECONDS"])


def mounts(pod: dict[str, Any]) -> set[str]:
    return {mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}


def restricted(pod: dict[str, Any]) -> bool:
    """Whether a pod of one container fulfils the restricted standard, on a read-only file system."""
    security = pod["containers"][0]["securityContext"]
    return (
        pod["automountServiceAccountToken"] is False
        and pod["enableServiceLinks"] is False  # a Service `ttmark-gen` would overwrite TTMARK_GEN_PORT
        and pod["securityContext"]["runAsNonRoot"] is True
        and pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        and security["allowPrivilegeEscalation"] is False
        and security["readOnlyRootFilesystem"] is True
        and security["capabilities"] == {"drop": ["ALL"]}
        and pod["containers"][0]["resources"].keys() == {"requests", "limits"}
    )


@pytest.mark.parametrize("name", WORKLOADS)
def test_pods_fulfil_the_restricted_standard(objects: list[dict[str, Any]], name: str) -> None:
    assert restricted(named(objects, "Deployment", name)["spec"]["template"]["spec"])


@pytest.mark.parametrize("name", ["generation", "detection"])
def test_a_pod_drains_before_it_is_killed(objects: list[dict[str, Any]], name: str) -> None:
    pod = named(objects, "Deployment", name)["spec"]["template"]["spec"]
    settings = named(objects, "ConfigMap", "ttmark")["data"]
    pause = int(container(objects, name)["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pod["terminationGracePeriodSeconds"] > pause + float(settings["TTMARK_DRAIN_SECONDS"])
    for probe, path in (("startup", "/readyz"), ("readiness", "/readyz"), ("liveness", "/healthz")):
        assert container(objects, name)[f"{probe}Probe"]["httpGet"]["path"] == path
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


def test_secrets_come_from_files_and_each_pod_sees_its_own_alone(objects, operator):
    assert not [o for o in objects + operator if o["kind"] == "Secret"]
    seen = {}
    for kind, name in (*(("Deployment", name) for name in WORKLOADS), ("Job", "operator")):
        volumes = named(objects + operator, kind, name)["spec"]["template"]["spec"]["volumes"]
        secrets = [volume["secret"] for volume in volumes if "secret" in volume]
        seen[name] = {
            (one["secretName"], *(item["key"] for item in one.get("items", [])))
            for one in secrets
            if not one.get("optional")
        }
    assert seen == {
        "generation": {("ttmark", "kek", "gen.url", "ca.crt")},
        "detection": {("ttmark", "kek", "detect.url", "case.pem", "webhook", "ca.crt")},
        "canary": {("ttmark-canary",)},
        "operator": {("ttmark-operator",)},
    }


def test_both_services_see_the_files_that_their_settings_name(objects: list[dict[str, Any]]) -> None:
    for name in ("generation", "detection"):
        pod = named(objects, "Deployment", name)["spec"]["template"]["spec"]
        assert {"name": "files", "configMap": {"name": "ttmark-files", "optional": True}} in pod["volumes"]
        assert "/files" in mounts(pod)


def test_an_operator_reaches_the_key_store_alone_and_is_gone_after_an_hour(operator):
    job = named(operator, "Job", "operator")["spec"]
    assert restricted(job["template"]["spec"])
    assert (job["backoffLimit"], job["activeDeadlineSeconds"]) == (0, 3600)
    policy = named(operator, "NetworkPolicy", "operator")["spec"]
    assert policy["podSelector"]["matchLabels"] == job["template"]["metadata"]["labels"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in policy
    (way,) = policy["egress"]
    assert [port["port"] for port in way["ports"]] == [6379]


@pytest.mark.parametrize("controller", ["nginx", "traefik"])
def test_an_example_of_an_ingress_lets_clients_in_and_keeps_the_operators_routes_inside(
    root: Path, objects: list[dict[str, Any]], controller: str
) -> None:
    path = root / f"deploy/kubernetes/examples/ingress-{controller}.yaml"
    ingress = yaml.safe_load(path.read_text())
    for version in VERSIONS:
        validate(ingress, version)
    assert ingress["spec"]["ingressClassName"] == controller
    hosts = [rule["host"] for rule in ingress["spec"]["rules"]]
    assert ingress["spec"]["tls"] == [{"hosts": hosts, "secretName": "ttmark-tls"}]
    paths = [path for rule in ingress["spec"]["rules"] for path in rule["http"]["paths"]]
    assert {path["path"] for path in paths} == {"/v1"}
    for path in paths:
        service = path["backend"]["service"]
        ports = named(objects, "Service", service["name"])["spec"]["ports"]
        assert service["port"]["name"] in {port["name"] for port in ports}
