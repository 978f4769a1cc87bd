"""The worker's requests in hand: their decisions, and what is reported of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from ttmark.gen_service.decoding.decoder import Decoder
from ttmark.gen_service.decoding.request import Delta, ReadingRequest, SequenceFailed
from ttmark.gen_service.features.vllm.worker.completion import FILLER, Completion, ReadingUnderWay
from ttmark.gen_service.features.vllm.worker.worker_messages import Failure, StepMeter, StepReport, Ticket
from ttmark.shared.tokenization import TextTokenizer

Rows = dict[Completion, torch.Tensor]
Outcomes = dict[Completion, Delta | SequenceFailed]
Branches = Sequence[tuple[int, int, tuple[int, ...]]]

TICKET = "ttmark"
"""What a ticket's name is called among the arguments of a vLLM request."""


class WorkerRequests:
    """Takes tickets, decides, and reports.

    Args:
        probe: logits [branches, vocab] of (row of the batch, tokens in the cache, path).
        agree: makes the failures of one rank those of all.
        send: takes the report of a step; None on every rank but the first.
    """

    def __init__(
        self,
        tokenizer: TextTokenizer,
        eos_token_ids: tuple[int, ...],
        max_branches: int,
        probe: Callable[[Branches], torch.Tensor],
        agree: Callable[[dict[str, str]], dict[str, str]],
        send: Callable[[StepReport], None] | None,
    ) -> None:
        self._tokenizer = tokenizer
        self._eos_token_ids = eos_token_ids
        self._decoder = Decoder(max_branches)
        self._probe = probe
        self._agree = agree
        self._send = send
        self._tickets: dict[str, Ticket] = {}
        self._in_hand: dict[str, Completion | ReadingUnderWay] = {}
        self._report = StepReport()
        self._meter = StepMeter()

    @property
    def size(self) -> int:
        return len(self._tickets) + len(self._in_hand)

    def take(self, ticket: Ticket) -> None:
        self._tickets[ticket.name] = ticket

    def forget(self, name: str) -> None:
        self._tickets.pop(name, None)

    def begin(self, request_id: str, arguments: Mapping[str, Any], reused: int) -> None:
        """vLLM has scheduled a request for the first time; one that is not in hand gets fillers."""
        ticket = self._tickets.pop(arguments[TICKET], None)
        if ticket is None:
            return
        self._report.started[ticket.name] = reused
        request = ticket.request
        if isinstance(request, ReadingRequest):
            self._in_hand[request_id] = ReadingUnderWay(ticket.name, request)
            return
        try:
            completion = Completion(ticket.name, request, self._tokenizer, self._eos_token_ids)
        except Exception as error:  # an error here would be one of vLLM's step
            self._report_failure(ticket.name, SequenceFailed.because(error))
            return
        completion.reused = reused
        self._in_hand[request_id] = completion

    def leave(self, request_id: str) -> None:
        self._in_hand.pop(request_id, None)

    def drafts(self, request_id: str) -> list[int]:
        """What vLLM is to compute of a request beyond the token that it was given."""
        completion = self._in_hand.get(request_id)
        return completion.drafts if isinstance(completion, Completion) else []

    def readings(self) -> Iterator[tuple[str, ReadingUnderWay]]:
        found = self._in_hand.items()
        return iter([(name, each) for name, each in found if isinstance(each, ReadingUnderWay)])

    def decide(
        self,
        request_ids: Sequence[str],
        drafted: Sequence[Sequence[int]],
        inside_prompt: Sequence[bool],
        logits: torch.Tensor,
    ) -> list[list[int]]:
        """Tokens to tell vLLM, at least one for each request whose prompt is complete.

        Args:
            drafted: tokens that are in the cache as drafts after the step.
            logits: [requests, vocab] of what comes after them.
        """
        self._meter.forwarded()
        places: dict[Completion, int] = {}
        told: list[list[int]] = [[FILLER] for _ in request_ids]
        rows: Rows = {}
        outcomes: Outcomes = {}
        for place, name in enumerate(request_ids):
            completion = self._in_hand.get(name)
            if inside_prompt[place]:
                told[place] = []
            elif isinstance(completion, Completion) and not completion.over:
                try:
                    told[place] = completion.accept(drafted[place])
                except Exception as error:
                    self.fail(completion, SequenceFailed.because(error))
                    told[place] = [FILLER]
                    continue
                places[completion] = place
                if len(told[place]) == len(drafted[place]):  # nothing was pending behind the drafts
                    rows[completion] = logits[place : place + 1]
        outcomes |= self._rounds(rows, places)
        for completion, outcome in outcomes.items():
            if isinstance(outcome, SequenceFailed):
                self.fail(completion, outcome)
                told[places[completion]].append(FILLER)
                continue
            if outcome.finish_reason is not None:
                outcome = replace(outcome, reused_tokens=completion.reused)
            self._report.outcomes[completion.ticket] = outcome
            sampled, *completion.pending = outcome.token_ids
            told[places[completion]].append(sampled)
        return told

    def fail(self, request: Completion | ReadingUnderWay, error: SequenceFailed) -> None:
        """Ends one request; nothing more is decided or read of it."""
        request.failed = True
        self._report_failure(request.ticket, error)

    def finish(self, reading: ReadingUnderWay) -> None:
        self._report.readings[reading.ticket] = reading.logprobs.values

    def step_begins(self) -> None:
        self._meter.begins()

    def count_rows(self, rows: Mapping[str, tuple[int, bool]]) -> None:
        """Rows of the step's own forward by request, and whether they belong to a prompt."""
        for name, (count, in_prompt) in rows.items():
            kind = "prefill" if in_prompt else "commit"
            self._report.rows[
                "reading" if isinstance(self._in_hand.get(name), ReadingUnderWay) else kind
            ] += count

    def step_ends(self) -> None:
        self._meter.ends(self._report, self._decoder.seconds)
        report, self._report = self._report, StepReport()
        if self._send is not None:
            self._send(report)

    def _report_failure(self, ticket: str, error: SequenceFailed) -> None:
        self._report.outcomes[ticket] = Failure(str(error), error.origin)

    def _rounds(self, rows: Rows, places: Mapping[Completion, int]) -> Outcomes:
        """Decides and probes until every completion has tokens, or has failed."""
        outcomes: Outcomes = {}
        while rows:
            made: Outcomes = self._agreed(dict(self._decoder.decide(rows)), rows)
            outcomes |= made
            waiting = [completion for completion in rows if completion not in made]
            rows, failures = self._probe_each(waiting, places)
            outcomes |= failures
        return outcomes

    def _agreed(self, made: Outcomes, rows: Rows) -> Outcomes:
        """A grammar's limit is one of time: where one rank fails, all do."""
        if not any(completion.request.grammar for completion in rows):
            return made
        own = {each.ticket: str(why) for each, why in made.items() if isinstance(why, SequenceFailed)}
        failed = self._agree(own)
        foreign = {
            each: SequenceFailed(failed[each.ticket])
            for each in rows
            if each.ticket in failed and each.ticket not in own
        }
        return made | foreign

    def _probe_each(
        self, waiting: Sequence[Completion], places: Mapping[Completion, int]
    ) -> tuple[Rows, Outcomes]:
        """Logits of all branches; if the probe fails, each completion is probed alone: the culprit ends."""
        if not waiting:
            return {}, {}
        branches = {
            each: [(places[each], len(each.tokens), path) for path in each.block.paths]
            for each in waiting
            if each.block is not None
        }
        self._meter.probes(list(branches.values()), self._report)
        try:
            logits = self._probe([branch for own in branches.values() for branch in own])
        except Exception as error:
            if len(waiting) == 1:
                return {}, {waiting[0]: SequenceFailed.because(error)}
            parts = [self._probe_each([each], places) for each in waiting]
            return {k: v for rows, _ in parts for k, v in rows.items()}, {
                k: v for _, failed in parts for k, v in failed.items()
            }
        finally:
            self._meter.forwarded()
        found = torch.split(logits, [len(own) for own in branches.values()])
        return dict(zip(branches, found, strict=True)), {}
