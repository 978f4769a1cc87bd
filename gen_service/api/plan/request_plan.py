"""From a request to its plan: prompts, sampling, marking, and one engine request per completion."""

import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from ttmark.gen_service.api.plan.backend import GenerationBackend
from ttmark.gen_service.api.plan.key_selection import choose_marking, markings
from ttmark.gen_service.api.plan.prompts import Prompt, chat_prompt, check_room, context_limit, plain_prompts
from ttmark.gen_service.api.plan.served_model import ServedModel
from ttmark.gen_service.api.plan.stages import MarkingChoice, RequestStage, open_stages
from ttmark.gen_service.decoding.request import Constraint, GenerationRequest, SamplingParams
from ttmark.shared.access.scopes import Principal
from ttmark.shared.http.service_errors import BadRequest, ContextLengthExceeded, NotReady
from ttmark.shared.languages.words import counted
from ttmark.shared.schemas.generation.chat import ChatMessage, ChatRequest
from ttmark.shared.schemas.generation.completions import DEFAULT_MAX_TOKENS, CompletionRequest
from ttmark.shared.schemas.generation.sampling import ChoiceFields, SamplingFields
from ttmark.shared.tokenization import TextTokenizer

_SEEDS = 2**63
_SAME_NAME = ("presence_penalty", "frequency_penalty", "ignore_eos")


def sampling_params(
    body: SamplingFields,
    resolved: Mapping[str, Any],
    *,
    max_tokens: int,
    logprobs: int | None,
    vocab_size: int,
    ends: Collection[int] = (),
    bad_words: tuple[tuple[int, ...], ...] = (),
) -> SamplingParams:
    """Sampling parameters of the first completion.

    Args:
        resolved: what `SamplingDefaults.under` makes of the body.

    Raises:
        BadRequest: naming the field that the engine refuses.
    """
    stop_token_ids = tuple(dict.fromkeys(body.stop_token_ids or ()))
    _check_ids("stop_token_ids", stop_token_ids, vocab_size)
    logit_bias = {int(token_id): bias for token_id, bias in (body.logit_bias or {}).items()}
    if len(bad_words) + len({*stop_token_ids, *ends}) >= vocab_size:
        raise BadRequest("bad_words: could leave no token to go on with.", param="bad_words")
    _check_ids("logit_bias", logit_bias, vocab_size)
    given: dict[str, Any] = {name: value for name in _SAME_NAME if (value := getattr(body, name)) is not None}
    try:
        return SamplingParams(
            max_tokens=max_tokens,
            logprobs=logprobs,
            stop=(body.stop,) if isinstance(body.stop, str) else tuple(body.stop or ()),
            min_tokens=body.min_tokens or 0,
            stop_token_ids=stop_token_ids,
            bad_words=bad_words,
            seed=None if body.seed is None else body.seed % _SEEDS,
            logit_bias=logit_bias,
            **resolved,
            **given,
        )
    except ValueError as error:
        message = str(error)
        raise BadRequest(f"{message}.", param=message.partition(" ")[0]) from error


def seed_of_choice(seed: int | None, choice: int) -> int | None:
    """The seed of a prompt's completion number `choice`; the first has the request's own."""
    return None if seed is None else (seed + choice) % _SEEDS


def _check_ids(field: str, ids: Collection[int], vocab_size: int) -> None:
    if ids and max(ids) >= vocab_size:
        raise BadRequest(f"{field}: token ids must be below the vocabulary size, {vocab_size}.", param=field)


def bad_word_ids(words: Sequence[str], tokenizer: TextTokenizer) -> tuple[tuple[int, ...], ...]:
    """What a completion may not have, each once: as vLLM takes them, at the beginning of a text and after a
    blank. Other tokens that happen to spell a word are not among them.
    """
    return tuple(dict.fromkeys(ids for word in words for ids in _spellings(word.lstrip(" "), tokenizer)))


def _spellings(word: str, tokenizer: TextTokenizer) -> Iterator[tuple[int, ...]]:
    alone, after_blank = (
        tuple(tokenizer.backend.encode(text, add_special_tokens=False).ids) for text in (word, f" {word}")
    )
    if alone:
        yield alone
    # With as many tokens the blank is part of the first; with more it is one of its own, which is no part.
    if alone and len(after_blank) == len(alone) and after_blank[0] != alone[0]:
        yield after_blank


@dataclass(frozen=True, slots=True)
class Plan:
    """What is about to be generated.

    Attributes:
        model_id: what the request calls the model.
        requests: completion number `i` continues prompt `i // choices_per_prompt`.
    """

    response_id: str
    model_id: str
    model: ServedModel
    prompts: Sequence[Prompt]
    choices_per_prompt: int
    requests: Sequence[GenerationRequest]
    marking: MarkingChoice
    stages: Sequence[RequestStage]

    def prompt_of(self, index: int) -> Prompt:
        return self.prompts[index // self.choices_per_prompt]

    @property
    def prompt_tokens(self) -> int:
        return sum(len(prompt.token_ids) for prompt in self.prompts)

    @property
    def text_start(self) -> int:
        """Characters that stand before the text of each completion."""
        return sum(stage.text_start for stage in self.stages)

    @property
    def most_tokens(self) -> int:
        """Tokens of all prompts, and the most that the completions may have."""
        return self.prompt_tokens + sum(request.sampling.max_tokens for request in self.requests)


async def plan_completion(body: CompletionRequest, caller: Principal, backend: GenerationBackend) -> Plan:
    """The plan of a completion request.

    Raises:
        ServiceError: the request cannot be served; the message says why.
    """
    planner = Planner("cmpl-", body, caller, backend)
    if body.echo and body.logprobs is not None:
        raise BadRequest("logprobs: not available together with echo.", param="logprobs")
    count, limit = len(body.prompts), backend.limits.max_completions
    if count * body.choices > limit:
        raise BadRequest(
            f"prompt: {counted(count, 'prompt')} times n = {body.choices} is more than the limit of "
            f"{limit} completions.",
            param="prompt",
        )
    planner.open_stages()
    prompts = await plain_prompts(body.prompts, planner.model)
    return await planner.plan(prompts, body.max_tokens or DEFAULT_MAX_TOKENS, logprobs=body.logprobs)


async def plan_chat(body: ChatRequest, caller: Principal, backend: GenerationBackend) -> Plan:
    """The plan of a chat request.

    Raises:
        ServiceError: the request cannot be served; the message says why.
    """
    planner = Planner("chatcmpl-", body, caller, backend)
    if body.top_logprobs and not body.logprobs:
        raise BadRequest("top_logprobs: needs logprobs.", param="top_logprobs")
    planner.open_stages()
    prompt, usual = await planner.read("messages", body.messages, body.chat_template_kwargs or {})
    return await planner.plan(
        [prompt],
        body.max_completion_tokens or body.max_tokens or usual,
        logprobs=(body.top_logprobs or 0) if body.logprobs else None,
    )


class Planner:
    """A request whose model is ready and whose key is known; the rest is checked on the way to its plan.

    Args:
        kind: what ids of responses begin with.

    Raises:
        ServiceError: there is no such model, or no key to mark its text with.
    """

    def __init__(
        self, kind: str, body: SamplingFields, caller: Principal, backend: GenerationBackend
    ) -> None:
        self._kind, self._body, self._caller, self._backend = kind, body, caller, backend
        self.model = backend.model(body.model)
        if not self.model.generator.ready:
            raise NotReady("The model is not ready.", retry_after=1)
        self._sampling: dict[str, Any] = self.model.sampling.under(body)
        temperature = self._sampling["temperature"]
        self._marking = choose_marking(body.watermark, temperature, caller, backend, self.model.generator)

    def open_stages(self) -> None:
        """Lets features look at what the request asks of them.

        Raises:
            ServiceError: it cannot be.
        """
        self._stages = open_stages(self._backend.hooks, self._body, self._body.model)

    async def read(
        self,
        field: str,
        messages: Sequence[ChatMessage],
        variables: Mapping[str, Any] = MappingProxyType({}),
    ) -> tuple[Prompt, int]:
        """A conversation, which the request calls `field`, as a prompt; tokens of its answer by default.

        Raises:
            ServiceError: it cannot be a prompt, or leaves no room for an answer.
        """
        model = self.model
        prompt = await chat_prompt(
            messages,
            model,
            field=field,
            earlier_answer=self._backend.earlier_answer,
            tools=[tool for stage in self._stages for tool in stage.shown],
            variables=variables,
        )
        room = model.generator.context_length - len(prompt.token_ids)
        if room < 1:
            raise ContextLengthExceeded(
                f"{context_limit(model.generator.context_length)} The messages have "
                f"{counted(len(prompt.token_ids), 'token')}, {counted(1 - room, 'token')} over what leaves "
                "room for an answer.",
                param=field,
            )
        return prompt, model.sampling.answer_tokens(room)

    async def plan(
        self,
        prompts: Sequence[Prompt],
        max_tokens: int,
        *,
        logprobs: int | None = None,
        limit_field: str = "max_tokens",
    ) -> Plan:
        """The plan; `limit_field` is what the request calls `max_tokens`.

        Raises:
            ServiceError: the request does not fit the model, or the policy refuses it.
        """
        body, model, backend = self._body, self.model, self._backend
        constraint: Constraint | None = None
        for stage in self._stages:
            constraint = await stage.constrain(prompts) or constraint
        choices = body.choices if isinstance(body, ChoiceFields) else 1
        for prompt in prompts:
            check_room(len(prompt.token_ids), max_tokens, model.generator.context_length, limit_field)
        sampling = sampling_params(
            body,
            self._sampling,
            max_tokens=max_tokens,
            logprobs=logprobs,
            vocab_size=model.generator.vocab_size,
            ends=model.generator.eos_token_ids,
            bad_words=bad_word_ids(body.bad_words or (), model.generator.tokenizer),
        )
        # They could forbid all that a constraint allows.
        beside = [name for name in ("min_tokens", "bad_words") if constraint and getattr(body, name)]
        if beside:
            message = f"{beside[0]}: not available together with tools or a form of the answer."
            raise BadRequest(message, param=beside[0])
        marking, prompt_tokens = self._marking, sum(len(prompt.token_ids) for prompt in prompts)
        for hook in backend.hooks:
            most_tokens = len(prompts) * choices * max_tokens
            marking = hook.choose(marking, body, self._caller, prompt_tokens, most_tokens)
        for stage in self._stages:
            stage.settle(marking, constrained=constraint is not None)
        marks = {token: sign for stage in self._stages for token, sign in stage.marks.items()}
        response_id = f"{self._kind}{uuid.uuid4().hex}"
        of_choices = [
            replace(sampling, seed=seed_of_choice(sampling.seed, choice)) if choice else sampling
            for choice in range(choices)
        ]
        requests = [
            GenerationRequest(
                request_id=f"{response_id}-{number * choices + choice}",
                prompt_ids=prompt.token_ids,
                sampling=of_choices[choice],
                marking=marked_with,
                unmarked_reason=marking.unmarked_reason,
                unmarked_block_size=marking.block_size,
                grammar=constraint,
                tenant=self._caller.tenant,
                repeatable=sampling.seed is not None,
                marks=marks,
            )
            for number, prompt in enumerate(prompts)
            for choice, marked_with in enumerate(markings(marking, sampling.seed, prompt.token_ids, choices))
        ]
        return Plan(
            response_id=response_id,
            model_id=body.model,
            model=model,
            prompts=prompts,
            choices_per_prompt=choices,
            requests=requests,
            marking=marking,
            stages=self._stages,
        )
