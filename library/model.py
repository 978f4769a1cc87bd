"""`ttmark.load`: a model that writes marked texts, by the engine or in transformers."""

import asyncio
import queue
import threading
import warnings
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress

from ttmark.gen_service.api.conversation.chat_template import MOST_CHARACTERS, ChatTemplate
from ttmark.gen_service.api.conversation.control_tokens import ConversationEncoder
from ttmark.gen_service.api.plan.prompts import as_seen, text_ids
from ttmark.gen_service.api.plan.watermark_report import ReceiptRule, scored
from ttmark.gen_service.decoding.filtered_tokens import FilterParams
from ttmark.gen_service.decoding.request import Delta, GenerationRequest, ReadingRequest
from ttmark.gen_service.engine.loop.engine import Engine
from ttmark.gen_service.engine.model.autotune import own_threads
from ttmark.gen_service.engine.model.loaded_model import boundary_tokens, usable_device
from ttmark.gen_service.engine.settings import EngineSettings
from ttmark.gen_service.smollm2 import SMOLLM2
from ttmark.library.generation_requests import generation_request, sampling_params
from ttmark.library.in_transformers import InTransformers
from ttmark.library.key import Key
from ttmark.library.tokenizer import text_tokenizer
from ttmark.services.model_folder import (
    model_id,
    named_templates,
    read_chat_template,
    read_sampling_defaults,
    resolve_model,
)
from ttmark.services.smollm2 import get_smollm2
from ttmark.services.state_folder import STATE_FOLDER, choices_file
from ttmark.shared.schemas.generation.chat import ChatMessage
from ttmark.shared.tokenization import TextTokenizer

Message = Mapping[str, str]
Pieces = Iterator[tuple[int, Delta]]
_MAX_BRANCHES = 8
"""As the services' default."""
_AT_ONCE = 64
"""Completions that the engine is given together: always enough to fill its steps, never too many to wait."""


class EngineWriter:
    """The engine, which runs in a thread of its own, for callers that wait."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="ttmark-library")
        self._thread.start()
        self._places = asyncio.Semaphore(_AT_ONCE)
        engine.start()
        # At the latest before Python ends its threads, which may be inside of a step.
        self.close = weakref.finalize(self, _end, engine, self._loop, self._thread)

    def generate(self, requests: Sequence[GenerationRequest]) -> Pieces:
        """See `InTransformers.generate`; ended early, what is not written yet is cancelled."""
        pieces: queue.SimpleQueue[tuple[int, Delta] | Exception | None] = queue.SimpleQueue()

        async def one(number: int, request: GenerationRequest) -> None:
            async with self._places:
                async for delta in self._engine.generate(request):
                    pieces.put((number, delta))

        async def every() -> None:
            try:
                async with asyncio.TaskGroup() as group:
                    for number, request in enumerate(requests):
                        group.create_task(one(number, request))
            except ExceptionGroup as error:
                pieces.put(error.exceptions[0])
            else:
                pieces.put(None)

        work = asyncio.run_coroutine_threadsafe(every(), self._loop)
        try:
            while (piece := pieces.get()) is not None:
                if isinstance(piece, Exception):
                    raise piece
                yield piece
        finally:
            work.cancel()

    def log_probs(self, text_ids: Sequence[int]) -> NDArray[np.float64]:
        """Natural log-probability of each token after those before it [tokens]."""
        request = ReadingRequest("library-reading", (), tuple(text_ids), FilterParams())
        return asyncio.run_coroutine_threadsafe(self._engine.read(request), self._loop).result()


def _end(engine: Engine, loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    async def cancel() -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    engine.stop(0.0)
    asyncio.run_coroutine_threadsafe(cancel(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@dataclass(repr=False, eq=False)
class Model:
    """A model that was loaded, with its tokenizer and its own sampling. `load` makes it."""

    _writer: EngineWriter | InTransformers
    tokenizer: TextTokenizer
    name: str
    _template: ChatTemplate | None = None
    _defaults: Mapping[str, Any] = field(default_factory=dict)

    def generate(
        self,
        prompt: str | Sequence[str] | Sequence[Message] | Sequence[Sequence[Message]],
        *,
        key: Key | None,
        stream: bool = False,
        chat: bool | None = None,
        **options: Any,
    ) -> Any:
        """The text after a prompt, marked with a key; of many prompts, a list of texts.

        Args:
            prompt: a text, a chat (messages with role and content), or a list of either.
            key: None writes without a mark.
            stream: an iterator of pieces of text instead; of many prompts, of (number, piece).
            chat: whether a text is a question in the model's chat template, or is continued; left out: a
                question if the model has a template. A text that is continued follows the tokens that the
                tokenizer puts before every text.
            options: max_new_tokens, temperature, top_k, top_p, min_p, repetition_penalty, do_sample,
                seed, stop_strings, as in transformers; for the others the model's own generation_config
                decides, or 256 new tokens if it says nothing. Text of do_sample=False has no mark.

        Raises:
            ValueError: no such option, a value out of range, or a chat for a model without a template.
            KeyDetectsOnly: the key was exported from a key store.
        """
        prompts = [prompt] if _is_one(prompt) else list(prompt)
        requests = [
            generation_request(
                number,
                self._prompt_ids(one, chat),
                sampling_params(options, self._defaults, number),
                key,
                self.tokenizer,
                self.name,
            )
            for number, one in enumerate(prompts)
        ]
        written = watched(requests, self._writer.generate(requests), self.tokenizer)
        if stream:
            pieces = ((number, delta.text) for number, delta in written)
            return (text for _, text in pieces) if _is_one(prompt) else pieces
        texts = [""] * len(prompts)
        console = Console(stderr=True)
        hidden = _is_one(prompt) or not console.is_terminal
        with Progress(console=console, disable=hidden, transient=True) as progress:
            bar = progress.add_task("texts", total=len(prompts))
            for number, delta in written:
                texts[number] += delta.text
                progress.advance(bar, delta.finish_reason is not None)
        return texts[0] if _is_one(prompt) else texts

    def log_probs(self, text_ids: Sequence[int]) -> NDArray[np.float64]:
        """Log-probability of each token of a text [tokens], in nats; what a `reader` of `detect` gives.

        Raises:
            ValueError: the model runs in transformers.
        """
        if isinstance(self._writer, InTransformers):
            raise ValueError(
                "a reader is a model that load took from a name or a folder, or a function from token ids to "
                "log-probabilities"
            )
        return self._writer.log_probs(text_ids)

    def close(self) -> None:
        """Ends what runs in the background; the process's end does so too."""
        if isinstance(self._writer, EngineWriter):
            self._writer.close()

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<ttmark model {self.name}>"

    @cached_property
    def _conversations(self) -> ConversationEncoder:
        if self._template is None:
            raise ValueError(
                f"{self.name} has no chat template: give it a text to continue, and no chat=True"
            )
        return ConversationEncoder(self.tokenizer, self._template)

    def _prompt_ids(self, prompt: Any, chat: bool | None) -> tuple[int, ...]:
        if isinstance(prompt, str):
            if chat is False or (chat is None and self._template is None):
                return tuple(text_ids(prompt, self.tokenizer))
            prompt = [{"role": "user", "content": prompt}]
        messages = [as_seen(ChatMessage.model_validate(dict(message))) for message in prompt]
        return self._conversations.encode(messages, "messages", MOST_CHARACTERS)[1]


def load(
    model: str | Path | tuple[Any, Any],
    *,
    dtype: str | None = None,
    device: str = "auto",
    reproducible: bool = False,
) -> Model:
    """A model of `smollm2` (fetched once into `.ttmark`), `demo`, a folder, a hub name, or transformers.

    On a CPU the engine runs it as the generation service does. Once, a separate process measures which
    number format and how many threads are fastest; `.ttmark/choices.json` keeps the choice, for `ttmark up`
    too. torch keeps that number of threads.

    Args:
        model: a name or folder, or (model, tokenizer) of transformers, which stay as they are.
        dtype: float32, bfloat16, float16 or auto: the fastest on a CPU, the checkpoint's on a GPU. Left out:
            auto, and float32 for reproducible texts on a CPU.
        device: cpu, cuda, cuda:1 or auto; of transformers' models where they are.
        reproducible: on a CPU a seed gives a prompt the same text in any list and at any time; it takes
            longer, with torch's own number of threads. Otherwise a seed repeats a text that is written
            alone, while the choice is the same.

    Raises:
        StartupError, ModelLoadError: there is no such model, or the engine cannot run it; one clear line.
    """
    if isinstance(model, tuple):
        own, tokens = model
        tokenizer = text_tokenizer(tokens)
        text = own.config.get_text_config()
        ends, _ = boundary_tokens(own.generation_config, text, text.vocab_size)
        source = named_templates(getattr(tokens, "chat_template", None)).get("default")
        special = {k: v for k, v in tokens.special_tokens_map.items() if isinstance(v, str)}
        template = ChatTemplate(source, special) if source else None
        named = own.generation_config.to_dict()
        defaults = {
            name: value
            for name in ("temperature", "top_k", "top_p", "min_p", "repetition_penalty")
            if (value := named.get(name)) is not None
        }
        name = str(getattr(own.config, "_name_or_path", "") or type(own).__name__)
        return Model(InTransformers(own, tokenizer, ends), tokenizer, name, template, defaults)
    name = str(model)
    folder = get_smollm2(STATE_FOLDER) if name == SMOLLM2 else resolve_model(name)
    on_cpu = usable_device(device).type == "cpu"
    settings = EngineSettings(
        model_id=model_id(name),
        device=device,
        dtype=dtype or ("float32" if reproducible and on_cpu else "auto"),
        threads=own_threads() if reproducible else "auto",
        max_branches=None if reproducible else _MAX_BRANCHES,
        reproducible=reproducible,
        choices=choices_file(STATE_FOLDER),
    )
    engine = Engine.load(str(folder), settings)
    defaults = read_sampling_defaults(folder).model_dump(exclude_none=True)
    known_as = str(Path(name).resolve()) if folder == Path(name) else name
    return Model(EngineWriter(engine), engine.tokenizer, known_as, read_chat_template(folder), defaults)


def _is_one(prompt: Any) -> bool:
    return isinstance(prompt, str) or (bool(prompt) and isinstance(prompt[0], Mapping))


def watched(
    requests: Sequence[GenerationRequest], pieces: Iterator[tuple[int, Delta]], tokenizer: TextTokenizer
) -> Iterator[tuple[int, Delta]]:
    """The pieces as they come; of a text whose `detectability` a service would call `none` it warns."""
    texts = [""] * len(requests)
    for number, delta in pieces:
        texts[number] += delta.text
        if delta.finish_reason and requests[number].marking:
            log10_p = scored(requests[number], texts[number], tokenizer)
            if ReceiptRule().word(log10_p) == "none":
                warnings.warn(
                    "a text may not be found at a false positive rate of 1e-5: it is short, the model "
                    "was sure of it, or it reads back as other tokens",
                    stacklevel=3,
                )
        yield number, delta
