"""The worker's requests in hand, driven by a scheduler that drops drafts as vLLM's does."""

import pickle
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from tests.harness.random_model import byte_tokenizer
from ttmark.gen_service.decoding.decoder import Decoder
from ttmark.gen_service.decoding.filtered_tokens import FilterParams
from ttmark.gen_service.decoding.request import (
    Delta,
    GenerationRequest,
    Marking,
    ReadingRequest,
    SamplingParams,
    SequenceFailed,
)
from ttmark.gen_service.decoding.sequence import Sequence as Reference
from ttmark.gen_service.features.structured.grammars.grammar import GrammarSource
from ttmark.gen_service.features.structured.grammars.json_grammar import ANY_OBJECT, JsonGrammars
from ttmark.gen_service.features.vllm.worker.completion import FILLER, Completion
from ttmark.gen_service.features.vllm.worker.worker_messages import Failure, StepReport, Ticket, open_ticket
from ttmark.gen_service.features.vllm.worker.worker_requests import TICKET, WorkerRequests
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.watermark.schemes.watermark import Watermark

TOKENIZER = TextTokenizer(byte_tokenizer())
KEY = bytes(range(16))
VOCAB = TOKENIZER.vocab_size
ENDS = (0,)
BRANCHES = 4


def model(tokens: Sequence[int]) -> torch.Tensor:
    """Logits [vocab] that any prefix determines: of its last three tokens and its length."""
    torch.manual_seed(hash((*tokens[-3:], len(tokens))) % 2**31)
    return 4 * torch.randn(VOCAB)


def request(
    number: int, block_size: int, scheme: str = "synthid", opening_bits: float = 0.0, **sampling: object
) -> GenerationRequest:
    params = SamplingParams(max_tokens=30, top_k=20, seed=number, **sampling)  # type: ignore[arg-type]
    watermark = Watermark(scheme, block_size) if block_size else None
    marking = None if watermark is None else Marking("k", 1, "p", watermark, KEY, opening_bits)
    return GenerationRequest(f"r{number}", tuple(range(1, 6 + number)), params, marking)


def reference(asked: GenerationRequest) -> list[Delta]:
    """What the decoder makes of a request that is alone, without vLLM's bookkeeping."""
    sequence = Reference(asked, TOKENIZER, ENDS)
    decoder, deltas = Decoder(BRANCHES), list[Delta]()
    while sequence.finish_reason is None:
        paths = sequence.block.paths if sequence.block is not None else [()]
        rows = torch.stack([model([*sequence.tokens, *path]) for path in paths])
        made = decoder.decide({sequence: rows}).get(sequence)
        if made is not None:
            assert isinstance(made, Delta)
            deltas.append(made)
    return deltas


class Scheduler:
    """As vLLM keeps its own lists of tokens: those told, and drafts that it may drop at any time."""

    def __init__(self, *asked: GenerationRequest, chance_of_drop: float = 0.0) -> None:
        self.reports: list[StepReport] = []
        self.in_hand = WorkerRequests(
            TOKENIZER, ENDS, BRANCHES, self.probe, lambda own: own, self.reports.append
        )
        self.lists: dict[str, list[int]] = {}
        self.broken: str | None = None
        self._random = random.Random(0)
        self._drop = chance_of_drop
        for each in asked:
            self.add(each)

    def add(self, asked: GenerationRequest) -> None:
        self.in_hand.take(Ticket(f"ticket-{asked.request_id}", asked))
        self.in_hand.begin(asked.request_id, {TICKET: f"ticket-{asked.request_id}"}, 3)
        self.lists[asked.request_id] = list(asked.prompt_ids)

    def probe(self, branches: Sequence[tuple[int, int, tuple[int, ...]]]) -> torch.Tensor:
        names = list(self.lists)
        if any(names[place] == self.broken for place, _, _ in branches):
            raise RuntimeError("no such probe")
        for place, length, _ in branches:
            assert len(self._computed[place]) == length, "a probe's prefix must be in the cache"
        return torch.stack([model([*self._computed[place], *path]) for place, _, path in branches])

    def step(self) -> None:
        names = list(self.lists)
        drafted = [self.in_hand.drafts(name) for name in names]
        drafted = [each[: self._random.choice([0, 1])] if self._dropped() else each for each in drafted]
        rows = [model([*self.lists[name], *own]) for name, own in zip(names, drafted, strict=True)]
        self._computed = [[*self.lists[name], *own] for name, own in zip(names, drafted, strict=True)]
        self.in_hand.step_begins()
        told = self.in_hand.decide(names, drafted, [False] * len(names), torch.stack(rows))
        self.in_hand.step_ends()
        for name, tokens, own in zip(names, told, drafted, strict=True):
            assert 1 <= len(tokens) <= len(own) + 1
            self.lists[name] += tokens

    def run(self) -> dict[str, list[Delta | Failure]]:
        for _ in range(45):
            self.step()
        outcomes: dict[str, list[Delta | Failure]] = {name: [] for name in self.lists}
        for report in self.reports:
            for ticket, outcome in report.outcomes.items():
                outcomes[ticket.removeprefix("ticket-")].append(outcome)
        return outcomes

    def _dropped(self) -> bool:
        return self._random.random() < self._drop


@pytest.mark.parametrize("chance_of_drop", [0.0, 0.4])
def test_pieces_are_those_of_the_decoder_whatever_drafts_are_dropped(chance_of_drop: float) -> None:
    schemes = ("synthid", "gumbel", "dipmark", "mcmark")
    asked = [request(n, n % 4, schemes[n // 3], ignore_eos=n % 2 == 0) for n in range(12)]
    asked[4] = request(4, 2, stop=("e",), logprobs=2)
    asked[5] = request(5, 3, presence_penalty=1.0, logit_bias={7: 2.0})
    asked[7] = request(7, 3, repetition_penalty=1.5)
    asked[11] = request(11, 3, min_tokens=9, stop_token_ids=(5, 9), bad_words=((7,), (3, 4)))
    asked[6] = request(6, 2, temperature=0.0)
    asked[9] = request(9, 1, opening_bits=6.0)
    asked[10] = request(10, 2, opening_bits=6.0)
    outcomes = Scheduler(*asked, chance_of_drop=chance_of_drop).run()
    for each in asked:
        assert outcomes[each.request_id] == reference(each)
    for number in (9, 10):
        report = outcomes[f"r{number}"][-1].report  # type: ignore[union-attr]
        assert report is not None
        assert report.reasons["opening"] > 0


def test_a_failing_probe_ends_the_culprit_alone_and_nothing_unmarked_is_given() -> None:
    asked = [request(n, 2) for n in range(3)]
    scheduler = Scheduler(*asked)
    scheduler.broken = "r1"
    outcomes = scheduler.run()
    assert outcomes["r0"] == reference(asked[0])
    assert outcomes["r2"] == reference(asked[2])
    *before, last = outcomes["r1"]
    assert isinstance(last, Failure)
    assert last.message == "RuntimeError: no such probe"
    assert before == reference(asked[1])[: len(before)]
    assert all(isinstance(each, Delta) and not each.finish_reason for each in before)


def test_drafts_that_were_not_decided_end_the_completion() -> None:
    scheduler = Scheduler(request(0, 2))
    for _ in range(6):
        scheduler.step()
    assert scheduler.in_hand.drafts("r0")
    scheduler.in_hand.decide(["r0"], [[VOCAB + 1]], [False], torch.zeros(1, VOCAB))
    scheduler.in_hand.step_ends()
    assert isinstance(scheduler.reports[-1].outcomes["ticket-r0"], Failure)
    assert scheduler.in_hand.drafts("r0") == []
    assert scheduler.in_hand.decide(["r0"], [[]], [False], torch.zeros(1, VOCAB)) == [[FILLER]]


@pytest.mark.parametrize("place", ["__init__", "accept"])
def test_a_fault_outside_of_the_decisions_ends_the_request_alone(
    monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    original = getattr(Completion, place)

    def fails(self: Completion, *arguments: object) -> object:
        asked = arguments[1] if place == "__init__" else self.request
        if asked.request_id == "r2":  # type: ignore[attr-defined]
            raise RuntimeError("injected")
        return original(self, *arguments)

    monkeypatch.setattr(Completion, place, fails)
    outcomes = Scheduler(request(1, 2), request(2, 2)).run()
    assert outcomes["r1"] == reference(request(1, 2))
    *before, last = outcomes["r2"]
    assert isinstance(last, Failure)
    assert last.message == "RuntimeError: injected"
    assert before == []


def test_a_request_without_a_ticket_gets_fillers_and_nothing_is_kept_of_those_that_left() -> None:
    scheduler = Scheduler()
    scheduler.in_hand.begin("stranger", {TICKET: "unknown"}, 0)
    assert scheduler.in_hand.decide(["stranger"], [[]], [False], torch.zeros(1, VOCAB)) == [[FILLER]]
    scheduler.add(request(0, 2))
    scheduler.in_hand.take(Ticket("never", request(1, 2)))
    assert scheduler.in_hand.size == 2
    scheduler.in_hand.forget("never")
    scheduler.in_hand.leave("r0")
    assert scheduler.in_hand.size == 0


def test_a_part_of_a_prompt_is_not_sampled_from() -> None:
    scheduler = Scheduler(request(0, 2))
    assert scheduler.in_hand.decide(["r0"], [[]], [True], torch.zeros(1, VOCAB)) == [[]]
    scheduler.in_hand.step_ends()
    assert scheduler.reports[-1].outcomes == {}


def test_one_rank_whose_grammar_fails_ends_the_completion_on_all() -> None:
    said = "GrammarFailed: the grammar takes too long"
    held = replace(request(0, 2), grammar=JsonGrammars(TOKENIZER, ENDS).compile(ANY_OBJECT))
    scheduler = Scheduler()

    def of_all(own: dict[str, str]) -> dict[str, str]:
        return own | {"ticket-r0": said}

    scheduler.in_hand = WorkerRequests(
        TOKENIZER, ENDS, BRANCHES, scheduler.probe, of_all, scheduler.reports.append
    )
    scheduler.add(held)
    scheduler.step()
    assert scheduler.reports[-1].outcomes["ticket-r0"] == Failure(said, "SequenceFailed")


def test_a_ticket_carries_a_request_to_another_process_and_shows_nobody_its_key() -> None:
    grammars = JsonGrammars(TOKENIZER, ENDS)
    asked = GenerationRequest(
        "r",
        (1, 2),
        SamplingParams(max_tokens=4, seed=1, logit_bias={3: 1.0}),
        Marking("k", 2, "p", Watermark("synthid", 2, 5, {"depth": 12}), KEY, 7.5),
        grammar=grammars.compile(ANY_OBJECT),
    )
    ticket = Ticket("name", asked)
    assert repr(ticket) == "<Ticket>"
    with pytest.raises(TypeError):
        pickle.dumps(ticket)
    sources: list[GrammarSource] = []

    def compile_grammar(source: GrammarSource) -> object:
        sources.append(source)
        return asked.grammar

    arrived = open_ticket(ticket.sealed(), compile_grammar).request  # type: ignore[arg-type]
    assert isinstance(arrived, GenerationRequest)
    assert sources == [GrammarSource("json_schema", '{"type": "object"}')]
    assert arrived.marking is not None
    assert asked.marking is not None
    assert arrived.marking.prf_key == KEY
    assert arrived.marking.opening_bits == 7.5
    assert arrived.marking.watermark.parameters == asked.marking.watermark.parameters
    assert arrived.marking.watermark.context_width == 5
    assert (arrived.prompt_ids, arrived.sampling) == (asked.prompt_ids, asked.sampling)


def test_a_failure_keeps_its_message_for_the_caller_and_its_origin_for_the_log() -> None:
    scheduler = Scheduler(request(0, 2))
    logits = torch.full((1, VOCAB), float("nan"))
    assert scheduler.in_hand.decide(["r0"], [[]], [False], logits) == [[FILLER]]
    scheduler.in_hand.step_ends()
    failure = scheduler.reports[-1].outcomes["ticket-r0"]
    assert isinstance(failure, Failure)
    assert failure.message == str(SequenceFailed("the model gave logits that are not finite"))


def test_rows_of_texts_that_are_read_are_counted_apart() -> None:
    reports: list[StepReport] = []
    in_hand = WorkerRequests(
        TOKENIZER, ENDS, BRANCHES, lambda _: torch.zeros(0), lambda failed: failed, reports.append
    )
    in_hand.take(Ticket("text", ReadingRequest("id", (), (1, 2, 3), FilterParams())))
    in_hand.begin("read", {TICKET: "text"}, 0)
    in_hand.step_begins()
    in_hand.count_rows({"read": (2, True), "prompt": (5, True), "token": (1, False)})
    in_hand.step_ends()
    assert reports[0].rows == {"prefill": 5, "probe": 0, "commit": 1, "reading": 2}
