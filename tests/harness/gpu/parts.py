"""The parts: what each runs on a GPU, and what proves on a CPU that it starts."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SEQUENCES = (1, 8, 32, 128)
_CHAT = ("--filters", "chat")
_TEST = ("-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", "-W", "default")


@dataclass(frozen=True)
class Part:
    """One command.

    Attributes:
        name: of its files.
        gpu: arguments of Python where there is a GPU; `{json}` is the file for its figures.
        cpu: the same where there is none, small; empty: nothing of it runs there.
        vllm: whether it runs in vLLM's environment.
    """

    name: str
    gpu: tuple[str, ...]
    cpu: tuple[str, ...]
    vllm: bool = False


def parts(model: str) -> tuple[Part, ...]:
    """In the order in which they run: what is right first, then how fast it is.

    Args:
        model: that speed is measured on; in a dry run it is the demo model.
    """
    tests = "tests/gpu/test_engine_on_gpu.py"
    skipped = (*_TEST, "--collect-only", tests)
    return (
        Part("probes", (*_TEST, tests, "-k", "probes or sinks"), skipped),
        Part("detected", (*_TEST, tests, "-k", "detected"), skipped),
        Part("bandwidth", _bandwidth(2**30), _bandwidth(2**22)),
        *(_embedded(model, sequences) for sequences in SEQUENCES),
        Part("vllm-tests", (*_TEST, "tests/vllm/test_gpu.py"), ("-c", "import vllm"), vllm=True),
        *(_vllm(model, sequences) for sequences in SEQUENCES),
    )


def _bandwidth(size: int) -> tuple[str, ...]:
    return ("-m", "tests.harness.gpu.bandwidth", "--bytes", str(size), "--json", "{json}")


def _embedded(model: str, sequences: int) -> Part:
    return Part(
        f"embedded-{sequences}",
        _bench("generate", model, sequences, 128, "--no-synthid", "--dtype", "bfloat16"),
        _bench("generate", "demo", min(sequences, 8), 4, "--no-synthid"),
    )


def _vllm(model: str, sequences: int) -> Part:
    return Part(
        f"vllm-{sequences}",
        _bench("vllm", model, sequences, 128, "--dtype", "bfloat16"),
        _bench("vllm", "demo", min(sequences, 8), 4, "--dtype", "float32", "--rounds", "1"),
        vllm=True,
    )


def _bench(name: str, model: str, sequences: int, tokens: int, *more: str) -> tuple[str, ...]:
    size = ("--sequences", str(sequences), "--tokens", str(tokens), "--block-sizes", "0,2")
    command = ("-c", "from ttmark.services.cli.main import app; app()", "bench", name, "--model", model)
    return (*command, *size, *_CHAT, *more, "--json", "{json}")


def arguments(part: Part, on_gpu: bool, json: Path) -> Sequence[str]:
    """What Python is given."""
    return [word.replace("{json}", str(json)) for word in (part.gpu if on_gpu else part.cpu)]
