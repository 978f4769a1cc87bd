"""docker-compose.yml against the Compose specification and our own rules."""

import json
import re
import socket
import subprocess
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from tests.stack.podman import taken
from ttmark.services.settings.generation import GenerationSettings
from ttmark.services.settings.unknown_variables import known_names

OURS = {"gen", "gen-gpu", "gen-vllm", "detect", "canary", "operator"}


def services(compose: dict[str, Any]) -> dict[str, dict[str, Any]]:
    result: dict[str, dict[str, Any]] = compose["services"]
    return result


def secret_names(service: dict[str, Any]) -> set[str]:
    return {secret if isinstance(secret, str) else secret["source"] for secret in service.get("secrets", [])}


def test_the_file_follows_the_compose_specification_and_has_all_services(compose: dict[str, Any]) -> None:
    folder = resources.files("check_jsonschema") / "builtin_schemas" / "vendor"
    schema = json.loads((folder / "compose-spec.json").read_text())
    validator = jsonschema.validators.validator_for(schema)(schema)
    assert [f"{list(error.path)}: {error.message}" for error in validator.iter_errors(compose)] == []
    assert {"redis", "gen", "gen-gpu", "detect", "prometheus", "grafana"} <= services(compose).keys()
    assert services(compose)["gen"]["profiles"] == ["cpu"]
    assert services(compose)["gen-gpu"]["profiles"] == ["gpu"]
    assert services(compose)["gen-vllm"]["profiles"] == ["vllm"]
    assert set(services(compose)["detect"]["profiles"]) == {"cpu", "gpu", "vllm"}
    assert services(compose)["detect"]["deploy"]["replicas"] == 2
    for name in ("gen-gpu", "gen-vllm"):  # they answer to the name of the other one
        assert services(compose)[name]["networks"]["front"]["aliases"] == ["gen"]


def test_every_container_is_pinned_hardened_limited_and_asked_how_it_is(compose: dict[str, Any]) -> None:
    for name, service in services(compose).items():
        assert re.search(r":v?\d+\.\d+\.\d+(-\w+)?$", service["image"]), name
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        profile = ["seccomp=deploy/docker/seccomp.json"] if name in OURS else []
        assert service["security_opt"] == ["no-new-privileges:true", *profile], name
        assert not service["user"].startswith(("0", "root")), name
        assert service["deploy"]["resources"]["limits"].keys() == {"cpus", "memory", "pids"}, name
        assert service["logging"]["options"]["max-size"], name
        assert name == "operator" or service["healthcheck"].get("test"), name


def test_the_seccomp_profile_of_our_images_is_there(compose: dict[str, Any], root: Path) -> None:
    options = {option for name in OURS for option in services(compose)[name]["security_opt"]}
    (profile,) = {option.removeprefix("seccomp=") for option in options if option.startswith("seccomp=")}
    assert json.loads((root / profile).read_text())["defaultAction"] == "SCMP_ACT_ERRNO"


def test_services_wait_until_what_they_need_is_healthy(compose: dict[str, Any]) -> None:
    conditions = [
        (name, needed, how["condition"])
        for name, service in services(compose).items()
        for needed, how in service.get("depends_on", {}).items()
    ]
    assert {("gen", "redis"), ("detect", "redis"), ("grafana", "prometheus")} <= {
        (name, needed) for name, needed, _ in conditions
    }
    assert {condition for *_, condition in conditions} == {"service_healthy"}


def test_ports_are_published_on_loopback_and_only_those_who_need_keys_reach_redis(compose):
    ports = [port for service in services(compose).values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)
    assert compose["networks"]["store"] == {"internal": True}
    reach = {name for name, service in services(compose).items() if "store" in service["networks"]}
    assert reach == {"redis", "gen", "gen-gpu", "gen-vllm", "detect", "operator"}


def test_secrets_are_files_outside_the_repository_and_not_in_the_environment(compose: dict[str, Any]) -> None:
    names = [name for service in services(compose).values() for name in service.get("environment", {})]
    plain = [
        name
        for name in names
        if re.search(r"KEK|TOKEN(?!IZER)|PASSWORD|SECRET|STORE_URL", name) and not name.endswith("_FILE")
    ]
    assert plain == []
    used = {name for service in services(compose).values() for name in secret_names(service)}
    assert used == compose["secrets"].keys()
    files = [secret["file"] for secret in compose["secrets"].values()]
    assert all(file.startswith("./.ttmark/compose/") for file in files)
    for name, service in services(compose).items():
        named = {
            value.removeprefix("/run/secrets/")
            for value in service.get("environment", {}).values()
            if str(value).startswith("/run/secrets/")
        }
        assert named <= secret_names(service), name


def test_one_script_makes_every_secret_and_never_replaces_one(compose, root, tmp_path):
    folder = tmp_path / "compose"
    command = [root / "deploy/make_secrets.sh", folder]
    subprocess.run(command, check=True, capture_output=True)
    paths = {
        name: folder / secret["file"].removeprefix("./.ttmark/compose/")
        for name, secret in compose["secrets"].items()
        if name != "canary_token"  # made by `ttmark tokens create` once Redis runs
    }
    first = {name: path.read_bytes() for name, path in paths.items()}
    assert folder.stat().st_mode & 0o777 == 0o700
    assert all(path.stat().st_mode & 0o444 == 0o444 for path in paths.values())
    assert (folder / "files").stat().st_mode & 0o777 == 0o755
    subprocess.run(command, check=True, capture_output=True)
    assert {name: path.read_bytes() for name, path in paths.items()} == first


def test_every_mounted_file_is_in_the_repository(compose: dict[str, Any], root: Path) -> None:
    sources = [
        volume.split(":")[0]
        for service in services(compose).values()
        for volume in service.get("volumes", [])
        if volume.startswith("./") and not volume.startswith("./.ttmark/")  # made by deploy/make_secrets.sh
    ]
    assert [source for source in sources if not (root / source).exists()] == []


def test_the_grace_period_is_longer_than_the_drain(compose: dict[str, Any]) -> None:
    drain = GenerationSettings.model_fields["drain_seconds"].default
    assert int(services(compose)["gen"]["stop_grace_period"].removesuffix("s")) > drain


def test_the_example_environment_explains_every_variable_with_its_default(
    compose_variables: dict[str, str], example_environment: dict[str, str]
) -> None:
    assert {name: example_environment[name] for name in compose_variables} == compose_variables
    assert example_environment.keys() - compose_variables.keys() <= known_names()


def test_vllm_runs_with_the_file_that_its_image_names_and_a_cache_that_programs_run_from(compose, root):
    service = services(compose)["gen-vllm"]
    mounts = dict(volume.split(":")[:2] for volume in service["volumes"])
    environment = (root / "deploy/docker/vllm.Dockerfile").read_text()
    assert f"TTMARK_ENGINE_FILE={mounts['./deploy/vllm/engine.yaml']}" in environment
    assert f"HOME={mounts['gen-cache']}" in environment  # /tmp is mounted without the right to run programs
    arguments = yaml.safe_load((root / "deploy/vllm/engine.yaml").read_text())
    (gpus,) = service["deploy"]["resources"]["reservations"]["devices"]
    assert arguments["tensor_parallel_size"] == int(gpus["count"])


def test_the_stack_s_test_looks_for_ports_that_are_used(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as used:
        port = used.getsockname()[1]
        file = tmp_path / "compose.yml"
        of = {name: {"ports": [f"127.0.0.1:{port - 1}-{port}:80"]} for name in ("grafana", "gen", "detect")}
        file.write_text(yaml.safe_dump({"services": of | {"redis": {}}}))
        assert str(port) in taken(file)
        assert len(taken(file)) == len(set(taken(file))) <= 2
        file.write_text(yaml.safe_dump({"services": {"grafana": of["grafana"]}}))
        assert taken(file) == []


def test_a_folder_of_secrets_from_before_lets_redis_play_its_transactions_back(root, tmp_path):
    """Redis leaves out what its default user may not write, and so lost each transaction at a restart."""
    users = tmp_path / "server/users.acl"
    users.parent.mkdir()
    others = "user operator on #digest\n"
    users.write_text("user default off sanitize-payload resetchannels -@all\n" + others)
    for _ in range(2):
        subprocess.run([root / "deploy/redis/provision.sh", tmp_path], check=True)
        template = (root / "deploy/redis/users.acl.template").read_text().splitlines()[0]
        assert users.read_text() == f"{template}\n{others}"
    assert list(tmp_path.iterdir()) == [users.parent]
