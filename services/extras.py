"""The optional parts of the distribution, and one clear line where one of them is missing."""

from collections.abc import Callable
from functools import wraps
from importlib.util import find_spec
from typing import ParamSpec, TypeVar

from ttmark.services.startup import StartupError, one_clear_line

P = ParamSpec("P")
R = TypeVar("R")

# The extras of pyproject.toml, each with the modules of its own libraries and the extras that it contains.
MODULES = {
    "gen": (
        "filelock",
        "gguf",
        "huggingface_hub",
        "jinja2",
        "llguidance",
        "psutil",
        "safetensors",
        "torch",
        "transformers",
    ),
    "detect": ("charset_normalizer", "confusable_homoglyphs", "lxml", "pdfminer", "pypdfium2", "regex"),
    "bulk": ("pyarrow",),
    "ray": ("ray",),
    "vllm": ("yaml",),
    "provenance": ("c2pa",),
    "eval": ("scipy",),
}
CONTAINS = {
    "gen": (),
    "detect": (),
    "bulk": ("detect",),
    "ray": ("bulk",),
    "vllm": ("gen",),
    "provenance": (),
    "eval": ("gen", "detect"),
}


def require(*extras: str) -> None:
    """Does nothing where every library of these extras is installed.

    Raises:
        StartupError: one is missing; the message names it and the command that installs it.
    """
    missing = {extra: modules[0] for extra in extras if (modules := _missing(extra))}
    if missing:
        wanted = ",".join(missing)
        raise StartupError(
            f"{', '.join(missing.values())} not installed: pip install 'ttmark[{wanted}]', "
            f"in a checkout .venv/bin/pip install -e '.[{wanted}]'"
        )


def needs(*extras: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A command that ends with one line and exit code 1 where one of these extras is missing."""

    def decorate(command: Callable[P, R]) -> Callable[P, R]:
        @wraps(command)
        def checked(*args: P.args, **options: P.kwargs) -> R:
            with one_clear_line():
                require(*extras)
            return command(*args, **options)

        return checked

    return decorate


def _missing(extra: str) -> list[str]:
    contained = [module for other in CONTAINS[extra] for module in _missing(other)]
    return [*contained, *(module for module in MODULES[extra] if find_spec(module) is None)]
