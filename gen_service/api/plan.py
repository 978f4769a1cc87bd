"""A request made ready for the engine: prompts, sampling, marking, one engine request per completion."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ttmark.gen_service.api.backend import GenerationBackend, ServedModel
from ttmark.gen_service.api.bad_words import bad_word_ids
from ttmark.gen_service.api.key_pool import markings
from ttmark.gen_service.api.key_selection import check_carried, choose_marking
from ttmark.gen_service.api.marking_choice import MarkingChoice
from ttmark.gen_service.api.marking_policy import Traffic
from ttmark.gen_service.api.prompts import Prompt, chat_prompt, check_room, completion_prompts, context_limit
from ttmark.gen_service.api.reasoning import Reasoning
from ttmark.gen_service.api.response_grammar import response_grammar
from ttmark.gen_service.api.sampling import sampling_params, seed_of_choice
from ttmark.gen_service.api.structured_outputs import asked_form
from ttmark.gen_service.api.tools import ToolUse, tool_use
from ttmark.gen_service.decoding.grammar import Grammar
from ttmark.gen_service.engine import GenerationRequest
from ttmark.shared.access.scopes import Principal
from ttmark.shared.counted import counted
from ttmark.shared.http.service_errors import BadRequest, ContextLengthExceeded, NotReady
from ttmark.shared.schemas.chat import ChatRequest
from ttmark.shared.schemas.completions import DEFAULT_MAX_TOKENS, CompletionRequest
from ttmark.shared.schemas.responses_request import ResponsesRequest
from ttmark.shared.schemas.sampling import ChoiceFields, SamplingFields
from ttmark.shared.schemas.watermark_block import LabelNote, ManifestNote, WatermarkOptions


@dataclass(frozen=True, slots=True)
class Plan:
    """What is about to be generated.

    Attributes:
        response_id: id of the response.
        model_id: what the request calls the model.
        prompts: in the order of the request.
        requests: completion number `i` continues prompt `i // choices_per_prompt`.
        text_start: characters of a label before the text of each.
        tools: that completions may call; None: their texts are texts.
        reasoning: None: they have none.
    """

    response_id: str
    model_id: str
    model: ServedModel
    prompts: Sequence[Prompt]
    choices_per_prompt: int
    requests: Sequence[GenerationRequest]
    marking: MarkingChoice
    stream: bool
    include_usage: bool
    return_token_ids: bool
    show_blocks: bool
    manifest: ManifestNote | None
    label: LabelNote | None
    text_start: int
    tools: ToolUse | None = None
    reasoning: Reasoning | None = None

    def prompt_of(self, index: int) -> Prompt:
        """The prompt that completion number `index` continues."""
        return self.prompts[index // self.choices_per_prompt]

    @property
    def prompt_tokens(self) -> int:
        """Tokens of all prompts, each counted once."""
        return sum(len(prompt.token_ids) for prompt in self.prompts)

    @property
    def most_tokens(self) -> int:
        """Tokens of all prompts, and the most that the completions may have."""
        return self.prompt_tokens + sum(request.sampling.max_tokens for request in self.requests)


async def plan_completion(body: CompletionRequest, caller: Principal, backend: GenerationBackend) -> Plan:
    """The plan of a completion request.

    Raises:
        ServiceError: the request cannot be served; the message says why.
    """
    model, marking = _model_and_marking(body, caller, backend)
    if body.echo and body.logprobs is not None:
        raise BadRequest("logprobs: not available together with echo.", param="logprobs")
    _check_count(len(body.prompts), body.choices, backend.limits.max_completions)
    field, form = asked_form(body)
    prompts = await completion_prompts(body, model)
    max_tokens = body.max_tokens or DEFAULT_MAX_TOKENS
    grammar = await response_grammar(form, None, model, None, ignore_eos=bool(body.ignore_eos), field=field)
    return _plan(
        "cmpl-",
        body,
        model,
        marking,
        prompts,
        max_tokens,
        body.logprobs,
        grammar,
        caller=caller,
        backend=backend,
    )


async def plan_chat(body: ChatRequest, caller: Principal, backend: GenerationBackend) -> Plan:
    """The plan of a chat request.

    Raises:
        ServiceError: the request cannot be served; the message says why.
    """
    model, marking = _model_and_marking(body, caller, backend)
    if body.top_logprobs and not body.logprobs:
        raise BadRequest("top_logprobs: needs logprobs.", param="top_logprobs")
    tools = tool_use(body.tools, body.tool_choice, body.parallel_tool_calls, model)
    field, form = asked_form(body, tools)
    prompt = await chat_prompt(
        body.messages,
        model,
        field="messages",
        label=backend.labels.label,
        tools=tools.shown if tools else (),
        variables=body.chat_template_kwargs or {},
    )
    room = _room(prompt, model, "messages")
    max_tokens = body.max_completion_tokens or body.max_tokens or model.sampling.answer_tokens(room)
    logprobs = (body.top_logprobs or 0) if body.logprobs else None
    reasoning = model.reasoning(prompt.text)
    grammar = await response_grammar(
        form, tools, model, reasoning, ignore_eos=bool(body.ignore_eos), field=field
    )
    plan = _plan(
        "chatcmpl-",
        body,
        model,
        marking,
        [prompt],
        max_tokens,
        logprobs,
        grammar,
        caller=caller,
        backend=backend,
    )
    return replace(plan, tools=tools, reasoning=reasoning)


async def plan_response(body: ResponsesRequest, caller: Principal, backend: GenerationBackend) -> Plan:
    """The plan of a request to the Responses API.

    Raises:
        ServiceError: the request cannot be served; the message says why.
    """
    model, marking = _model_and_marking(body, caller, backend)
    tools = tool_use(body.chat_tools, body.chat_tool_choice, body.parallel_tool_calls, model)
    prompt = await chat_prompt(
        body.messages,
        model,
        field="input",
        label=backend.labels.label,
        tools=tools.shown if tools else (),
    )
    room = _room(prompt, model, "input")
    max_tokens = body.max_output_tokens or model.sampling.answer_tokens(room)
    reasoning = model.reasoning(prompt.text)
    grammar = await response_grammar(
        body.response_format,
        tools,
        model,
        reasoning,
        ignore_eos=bool(body.ignore_eos),
        field="text.format",
    )
    plan = _plan(
        "resp_",
        body,
        model,
        marking,
        [prompt],
        max_tokens,
        None,
        grammar,
        caller=caller,
        backend=backend,
        limit_field="max_output_tokens",
    )
    return replace(plan, tools=tools, reasoning=reasoning)


def _model_and_marking(
    body: SamplingFields, caller: Principal, backend: GenerationBackend
) -> tuple[ServedModel, MarkingChoice]:
    model = backend.model(body.model)
    if not model.generator.ready:
        raise NotReady("The model is not ready.", retry_after=1)
    sampling = model.sampling.under(body)
    marking = choose_marking(body.watermark, sampling["temperature"], caller, backend, model.generator)
    check_carried(body.watermark, marking)
    return model, marking


def _check_count(prompts: int, choices: int, limit: int) -> None:
    if prompts * choices > limit:
        raise BadRequest(
            f"prompt: {counted(prompts, 'prompt')} times n = {choices} is more than the limit of "
            f"{limit} completions.",
            param="prompt",
        )


def _check_beside_grammar(body: SamplingFields) -> None:
    """Refuses what could forbid all that a grammar allows."""
    for field in ("min_tokens", "bad_words"):
        if getattr(body, field):
            raise BadRequest(
                f"{field}: not available together with tools or a form of the answer.", param=field
            )


def _room(prompt: Prompt, model: ServedModel, field: str) -> int:
    room = model.generator.context_length - len(prompt.token_ids)
    if room < 1:
        raise ContextLengthExceeded(
            f"{context_limit(model.generator.context_length)} The messages have "
            f"{counted(len(prompt.token_ids), 'token')}, {counted(1 - room, 'token')} over what leaves room "
            "for an answer.",
            param=field,
        )
    return room


def _plan(
    kind: str,
    body: SamplingFields,
    model: ServedModel,
    marking: MarkingChoice,
    prompts: Sequence[Prompt],
    max_tokens: int,
    logprobs: int | None,
    grammar: Grammar | None = None,
    *,
    caller: Principal,
    backend: GenerationBackend,
    limit_field: str = "max_tokens",
) -> Plan:
    choices, include_usage = 1, False
    if isinstance(body, ChoiceFields):
        choices, include_usage = body.choices, body.include_usage
    for prompt in prompts:
        check_room(len(prompt.token_ids), max_tokens, model.generator.context_length, limit_field)
    sampling = sampling_params(
        body,
        model.sampling,
        max_tokens=max_tokens,
        logprobs=logprobs,
        vocab_size=model.generator.vocab_size,
        ends=model.generator.eos_token_ids,
        bad_words=bad_word_ids(body.bad_words or (), model.generator.tokenizer),
    )
    if grammar is not None:
        _check_beside_grammar(body)
    traffic = Traffic(
        caller=caller,
        options=body.watermark or WatermarkOptions(),
        model_id=body.model,
        prompt_tokens=sum(len(prompt.token_ids) for prompt in prompts),
        most_tokens=len(prompts) * choices * max_tokens,
    )
    marking = backend.policy.apply(marking, traffic)
    label = backend.labels.choose(structured=grammar is not None)
    manifest = backend.manifests.choose(body.watermark, marking.manifest, structured=grammar is not None)
    response_id = f"{kind}{uuid.uuid4().hex}"
    marked_with = [
        one for prompt in prompts for one in markings(marking, sampling.seed, prompt.token_ids, choices)
    ]
    requests = [
        GenerationRequest(
            request_id=f"{response_id}-{index}",
            prompt_ids=prompts[index // choices].token_ids,
            sampling=replace(sampling, seed=seed_of_choice(sampling.seed, index % choices)),
            marking=marked_with[index],
            unmarked_reason=marking.unmarked_reason,
            unmarked_block_size=marking.block_size,
            grammar=grammar,
            tenant=caller.tenant,
            repeatable=sampling.seed is not None,
        )
        for index in range(len(prompts) * choices)
    ]
    return Plan(
        response_id=response_id,
        model_id=body.model,
        model=model,
        prompts=prompts,
        choices_per_prompt=choices,
        requests=requests,
        marking=marking,
        stream=bool(body.stream),
        include_usage=include_usage,
        return_token_ids=bool(body.return_token_ids),
        show_blocks=bool(body.watermark and body.watermark.show_blocks),
        manifest=manifest,
        label=label,
        text_start=backend.labels.text_start if label == "start" else 0,
    )
