"""Gives every experiment's command the options that a run needs, without repeating them."""

import inspect
from collections.abc import Callable
from typing import Any

from evaluation.cli.lab import open_lab
from evaluation.cli.options import DEFAULT_OUT, DEMO, Batch, Label, Model, Out, Prompts, Seed, Threads


def _shared(
    model: Model = DEMO,
    prompts: Prompts = None,
    out: Out = DEFAULT_OUT,
    label: Label = None,
    seed: Seed = 0,
    threads: Threads = None,
    batch: Batch = 32,
) -> None:
    """Options of every experiment."""


def with_lab(command: Callable[..., None]) -> Callable[..., None]:
    """A command line of `command`, which takes an open `Lab` first and its own options after it."""
    shared = inspect.signature(_shared).parameters
    own = list(inspect.signature(command).parameters.values())[1:]

    def opened(**options: Any) -> None:
        lab_options = {name: options.pop(name) for name in shared}
        with open_lab(**lab_options) as lab:
            command(lab, **options)

    opened.__name__, opened.__doc__ = command.__name__, command.__doc__
    parameters = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in [*own, *shared.values()]
    ]
    opened.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    opened.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return opened
