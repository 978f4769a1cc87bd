"""What is changed of vLLM's model runner: where tokens come from, and what is read of a prompt."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import torch
from vllm.v1.outputs import SamplerOutput

from ttmark.gen_service.decoding.logprobs import ROWS
from ttmark.gen_service.decoding.request import SequenceFailed
from ttmark.gen_service.features.vllm.worker.completion import ReadingUnderWay
from ttmark.gen_service.features.vllm.worker.probe_reuse import KeptRows
from ttmark.gen_service.features.vllm.worker.worker_requests import WorkerRequests

if TYPE_CHECKING:
    Runner = Any
else:
    Runner = object


_NO_TOKEN = -1  # vLLM's own filler of rows of unequal length


class TandemRunner(Runner):  # type: ignore[misc]
    """Mixed in before a model runner of vLLM's.

    A step's own forward is the commit: the last rows of the blocks that the step before decided, whose
    drafts are always right. Its last row says what comes next. `_sample` has the blocks decided, with probes
    in between, and hands vLLM the first token of each; the proposer hands it the others as drafts. Rows that
    a probe has computed are left out of the next step's forward.
    """

    in_hand: WorkerRequests
    kept: KeptRows
    _skipped: Mapping[str, list[int]] = {}

    def execute_model(self, scheduler_output: Any, *args: Any, **kwargs: Any) -> Any:
        self.in_hand.step_begins()
        own = replace(  # the scheduler goes on with its own
            scheduler_output,
            num_scheduled_tokens=dict(scheduler_output.num_scheduled_tokens),
            scheduled_spec_decode_tokens=dict(scheduler_output.scheduled_spec_decode_tokens),
        )
        return super().execute_model(own, *args, **kwargs)

    def sample_tokens(self, grammar_output: Any) -> Any:
        output = super().sample_tokens(grammar_output)
        self.in_hand.step_ends()
        return output

    def _update_states(self, scheduler_output: Any) -> Any:
        for request_id in scheduler_output.finished_req_ids:
            self.in_hand.leave(request_id)
        for new in scheduler_output.scheduled_new_reqs:
            self.in_hand.begin(new.req_id, new.sampling_params.extra_args, new.num_computed_tokens)
        result = super()._update_states(scheduler_output)
        self._skipped = self.kept.skip(scheduler_output, self.input_batch, self.requests)
        scheduled: Mapping[str, int] = scheduler_output.num_scheduled_tokens
        self.in_hand.count_rows({name: (count, self._in_prompt(name)) for name, count in scheduled.items()})
        return result

    def _in_prompt(self, name: str) -> bool:
        request = self.requests[name]
        return bool(request.num_computed_tokens < request.num_prompt_tokens)

    @torch.inference_mode()
    def _sample(self, logits: torch.Tensor, spec_decode_metadata: Any) -> Any:
        names = list(self.input_batch.req_ids)
        if spec_decode_metadata is None:
            drafted: list[list[int]] = [[] for _ in names]
        else:
            tokens = iter(spec_decode_metadata.draft_token_ids.tolist())
            drafted = [[next(tokens) for _ in range(n)] for n in spec_decode_metadata.num_draft_tokens]
        # vLLM makes up rows of token -1 to have as many of each request; they say nothing.
        own = [[token for token in each if token >= 0] for each in drafted]
        if len(logits) > len(names):
            starts = accumulate((len(each) + 1 for each in drafted), initial=0)
            last = [start + len(each) for start, each in zip(starts, own, strict=False)]
            logits = logits[torch.tensor(last, device=logits.device)]
        inside_prompt = self.discard_request_mask.np[: len(names)].tolist()
        drafted = [self._skipped.get(name, each) for name, each in zip(names, own, strict=True)]
        told = self.in_hand.decide(names, drafted, inside_prompt, logits)
        for row, name in enumerate(names):
            if told[row] and (drafts := self.in_hand.drafts(name)):
                self.kept.keep(name, row, told[row][-1], drafts)
        width = max(map(len, told))
        padded = [tokens + [_NO_TOKEN] * (width - len(tokens)) for tokens in told]
        sampled = torch.tensor(padded, dtype=torch.int32, device=self.device).view(len(told), width)
        return SamplerOutput(sampled_token_ids=sampled, logprobs_tensors=None)

    def propose_drafts(self) -> list[list[int]]:
        return [self.in_hand.drafts(name) for name in self.input_batch.req_ids]

    @torch.inference_mode()
    def _get_prompt_logprobs_dict(self, hidden_states: torch.Tensor, num_scheduled_tokens: Any) -> Any:
        for name, reading in self.in_hand.readings():
            count = num_scheduled_tokens.get(name)
            if count is not None and not reading.failed:
                self._read(name, reading, hidden_states, count)
        return {}

    def _read(self, name: str, reading: ReadingUnderWay, hidden_states: torch.Tensor, count: int) -> None:
        start = self.requests[name].num_computed_tokens
        offset = int(self.query_start_loc.np[self.input_batch.req_id_to_index[name]])
        wanted = reading.wanted(start, count)
        try:
            for first in range(wanted.start, wanted.stop, ROWS):
                rows = hidden_states[offset + first : offset + min(first + ROWS, wanted.stop)]
                reading.take(start + first, self.model.compute_logits(rows).float())
        except Exception as error:
            self.in_hand.fail(reading, SequenceFailed.because(error))
            return
        if reading.ends_at(start + count - 1):
            self.in_hand.finish(reading)
