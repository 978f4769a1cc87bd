"""Settings of the engine: plain values, read from nowhere."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Quantization = Literal["auto", "int4", "int8", "none"]


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """How an engine runs a model.

    Attributes:
        model_id: name under which the model is served; the folder's or hub name if None.
        device: "cpu", "cuda", "cuda:1", or "auto".
        dtype: "float32", "bfloat16", "float16", or "auto" (on a CPU the faster of float32 and bfloat16,
            measured at start; on a GPU the checkpoint's own).
        quantization: "int4" or "int8": on a CPU matrices have so many bits, in groups of 32 inputs; "auto":
            4 where a bfloat16 model's numbers are of so many, as those made of a Q4_1 file; "none": never.
        threads: CPU threads of torch; None leaves torch's choice, "auto" takes one or torch's choice, by
            measurement at start. Equal tokens in any batch are promised for float32, and for matrices of 4
            or 8 bits, on a CPU and one number of threads: with "auto", here or for the dtype, a seed's text
            may change with the next start.
        context_length: upper limit of prompt and completion in tokens; None is the model's own.
        max_sequences: sequences that are generated at the same time.
        max_waiting: requests that may wait for a place; one more is refused with `Overloaded`.
        reading_share: what readings may take while something is written: rows for each row that is written,
            and of the places in the passes and in the queue as many, which are theirs alone. With a fifth
            writing keeps five rows of six, and nobody has to choose: an idle service gives all to reading.
        kv_tokens: tokens that the KV cache holds, over all sequences; None takes `memory_share`.
        memory_share: part of the memory that is free at start for the KV cache, at most what `max_sequences`
            full contexts need.
        step_rows: rows (tokens) of one forward pass above which no more work is added to it.
        prefill_chunk: tokens of a prompt that are computed in one piece.
        max_branches: candidates of a block level that are probed together (head of the branch budget); None
            is as many as the filters leave, up to `step_rows`.
        reproducible: a seed gives the same tokens whatever else is computed in the same passes; without it
            passes are cheaper, and a seed is repeatable for a request that is alone.
        prefix_cache: keep what sequences leave in the cache, and go on from it where a prompt of the same
            tenant begins with the same tokens; it yields to any sequence that needs room.
        choices: file that keeps measured dtypes and threads for the next start; None: each start measures.
        request_seconds: time after which a request is failed, from its arrival; None is no limit.
    """

    model_id: str | None = None
    device: str = "auto"
    dtype: str = "float32"
    quantization: Quantization = "auto"
    threads: int | Literal["auto"] | None = None
    context_length: int | None = None
    max_sequences: int = 32
    max_waiting: int = 256
    reading_share: float = 0.2
    kv_tokens: int | None = None
    memory_share: float = 0.25
    step_rows: int = 512
    prefill_chunk: int = 256
    max_branches: int | None = None
    reproducible: bool = True
    prefix_cache: bool = True
    choices: Path | None = None
    request_seconds: float | None = None
