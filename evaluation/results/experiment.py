"""The texts of `ttmark eval results`, and what each detector finds of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ttmark.evaluation.engine_source import EngineSource, completion_request
from ttmark.evaluation.experiment_cells import Cell, prf_key, sampling_seed
from ttmark.evaluation.intervals import Interval, clopper_pearson
from ttmark.evaluation.quality.arms import KINDS, OURS, ours
from ttmark.evaluation.quality.peers import PEERS, PeerMark
from ttmark.evaluation.report import Table, groups, rate_name, table_by
from ttmark.evaluation.results.detectors import MakeService, Pool, Reader, reader_of
from ttmark.evaluation.text_edits import Material, mix, words_of
from ttmark.evaluation.text_files import read_field
from ttmark.evaluation.unmarked_texts import human_documents
from ttmark.gen_service.decoding.request import GenerationRequest, Marking
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.watermark.likelihood.evidence import LikelihoodTest
from ttmark.shared.watermark.schemes.registry import scheme_title
from ttmark.shared.watermark.schemes.watermark import Watermark

FPRS = (1e-5, 1e-2)
SINGLE = "single"
ACCOUNT = "account"
PROSE = "prose"
NO_READER = "no reader"
ANSWER_TOKENS = 50
OF_ACCOUNT = 40
"""Answers of a made-up account that writes with our mark, to different questions."""
ANSWERS = (1, 2, 4, 6, 8, 10, 12, 16)
_NOBODY = 1 << 30
"""The first index of accounts that wrote nothing with a key of ours."""
TRIED = 4
"""Keys that are tried, the one of the text among them."""
EDITS = (0.0, 0.1, 0.25)
MOST_READ = 200
"""Tokens of the longest texts that a reader reads along, which takes longest."""


def titles() -> dict[str, str]:
    others = {name: title for name, (title, _) in PEERS.items() if name != "sbw" or find_spec("sbw")}
    return {OURS: "ours, pairs", SINGLE: "ours, single tokens", **others}


@lru_cache(maxsize=64)
def watermark_of(arm: str, vocab_size: int) -> Watermark:
    """What marks the texts of an arm, for a vocabulary of so many tokens.

    Raises:
        ValueError: there is no such arm, or it cannot run here.
    """
    scheme, colon, size = arm.partition(":")
    if colon and size.isdecimal():
        return Watermark(scheme, int(size))
    if arm not in titles():
        raise ValueError(f"--arm {arm}: there are {', '.join(titles())}, and schemes as in dipmark:2")
    if arm == OURS:
        return ours()
    return Watermark("gumbel", 1, ours().context_width) if arm == SINGLE else PEERS[arm][1](vocab_size)


def title_of(arm: str) -> str:
    scheme, _, size = arm.partition(":")
    return titles().get(arm) or f"{scheme_title(scheme)}, blocks of {size}"


@dataclass(frozen=True, slots=True)
class Marked(Cell):
    """Texts of one kind with one mark.

    Attributes:
        of_key: texts that one key marks, one after the other.
    """

    arm: str = OURS
    kind: str = PROSE
    of_key: int = 1

    @property
    def name(self) -> str:
        return f"{self.arm.replace(':', '-')}-{self.kind}-{self.setting.slug}-n{self.tokens}-k{self.of_key}"

    @property
    def title(self) -> str:
        return f"{title_of(self.arm)}, {self.kind}"

    def pool(self, seed: int, index: int, number: int = 0) -> Pool:
        """The PRF keys of the key of a text; those of other numbers made no text."""
        size = KINDS[OURS].pool if self.arm == OURS else 1
        return [prf_key(seed, self.name, index // self.of_key, number, place) for place in range(size)]


class MarkedSource(EngineSource):
    """Texts that have their full length, by prompts of their kind."""

    def request(self, cell: Cell, index: int, seed: int) -> GenerationRequest:
        if not isinstance(cell, Marked):
            raise TypeError("not a cell of this experiment")
        text_seed = sampling_seed(seed, cell.name, index)
        pool = cell.pool(seed, index)
        mark = watermark_of(cell.arm, self.vocab_size)
        opening = KINDS[OURS].opening_bits if cell.arm == OURS else 0.0
        marking = Marking("evaluation", 1, "evaluation", mark, pool[text_seed % len(pool)], opening)
        prompts = self.of_kind[cell.kind]
        asked = completion_request(
            cell, index, prompts[index % len(prompts)], text_seed, marking, ignore_eos=False
        )
        return replace(asked, sampling=replace(asked.sampling, min_tokens=cell.tokens))

    @property
    def vocab_size(self) -> int:
        return self.tokenizer.id_bound

    @cached_property
    def of_kind(self) -> Mapping[str, Sequence[tuple[int, ...]]]:
        """Prompts as token ids; those of a file without the field `kind` are prose."""
        kinds = read_field(self.prompts_path, "kind", PROSE)
        pairs = groups(zip(kinds, self.prompts, strict=True), lambda one: one[0])
        return {kind: [prompt for _, prompt in of_kind] for kind, of_kind in pairs.items()}


@dataclass(frozen=True, slots=True)
class Found:
    """How many texts a detector finds.

    Attributes:
        edited: share of the words that were edited.
        keys: that are tried.
        shares: found at each of `FPRS`.
        alarms: of as many trials with keys that made no text of the cell, at 1e-2; None: not tried.
    """

    arm: str
    detector: str
    reader: str
    keys: int
    kind: str
    tokens: int
    edited: float
    texts: int
    shares: tuple[Interval, ...]
    alarms: Interval | None = None


Finds = Callable[[str, int, float, bool], bool]
"""Whether a text, its number, is found at a rate; under its own key, or under ones that made none."""


FindsTogether = Callable[[Sequence[str], int, float], bool]
"""Whether texts of one account are found together at a rate, by the index of the account's first."""


class Detectors:
    """Those that can read the texts of an arm."""

    def __init__(
        self, tokenizer: TextTokenizer, seed: int, readers: Mapping[str, Reader], service: MakeService
    ) -> None:
        self._make_service = service
        self._tokenizer = tokenizer
        self._seed = seed
        self._readers: Mapping[str, Reader | None] = {NO_READER: None, **readers}

    def of(self, cell: Marked) -> Iterator[tuple[str, str, int, Finds]]:
        """Name, reader, keys tried, and what finds."""
        mark = watermark_of(cell.arm, self._tokenizer.id_bound)
        readers = self._readers if cell.arm == OURS else {NO_READER: None}
        if cell.arm == OURS:
            for name, read in readers.items():
                for keys in (1, TRIED) if read is None else (TRIED,):
                    yield "the service", name, keys, self._service(cell, mark, keys, read)
        if isinstance(mark, PeerMark):
            yield "its own", NO_READER, 1, self._own(cell, mark)
        if not isinstance(mark, PeerMark) or mark.has_likelihood:
            yield "our likelihood ratio", NO_READER, 1, self._likelihood(cell, mark)

    def account(self, cell: Marked) -> FindsTogether:
        """Whether the texts of the account with text `index` are found together, with `TRIED` keys."""
        service = self._make_service(ours(), self._tokenizer)

        def finds(texts: Sequence[str], index: int, fpr: float) -> bool:
            pools = [cell.pool(self._seed, index, number) for number in range(TRIED)]
            return service.finds(texts, pools, fpr)

        return finds

    def _service(self, cell: Marked, mark: Watermark, keys: int, read: Reader | None) -> Finds:
        service = self._make_service(mark, self._tokenizer)

        def finds(text: str, index: int, fpr: float, own: bool) -> bool:
            pools = [cell.pool(self._seed, index, number + (not own)) for number in range(keys)]
            return service.finds([text], pools, fpr, read)

        return finds

    def _own(self, cell: Marked, mark: PeerMark) -> Finds:
        def finds(text: str, index: int, fpr: float, own: bool) -> bool:
            tokens = np.array(self._tokenizer.encode(text), dtype=np.int64)
            (key,) = cell.pool(self._seed, index, 1 - own)
            return bool(mark.own_log10_p(key, tokens) <= np.log10(fpr))

        return finds

    def _likelihood(self, cell: Marked, mark: Watermark) -> Finds:
        """Our likelihood ratio, which models edits, on the mark's own kind of blocks."""

        def finds(text: str, index: int, fpr: float, own: bool) -> bool:
            pool = cell.pool(self._seed, index, 1 - own)
            # One key alone: that of a pool which wrote the text.
            key = pool[sampling_seed(self._seed, cell.name, index) % len(pool)]
            tokens = np.array(self._tokenizer.encode(text), dtype=np.int64)
            test = LikelihoodTest(mark, tokens, rate=fpr)
            return bool(test.under([key]).log10_p <= np.log10(fpr))

        return finds


def edited(text: str, share: float, index: int, seed: int) -> str:
    """With so many of the words substituted, deleted or inserted."""
    if not share:
        return text
    return mix(text, share, _material(), np.random.default_rng(sampling_seed(seed, "edited", index, share)))


@lru_cache(maxsize=1)
def _material() -> Material:
    return Material.of(human_documents())


def found_rows(
    detectors: Detectors,
    cell: Marked,
    which: tuple[str, str, int],
    texts: Mapping[int, Sequence[str]],
    edits: Sequence[float],
    seed: int,
) -> list[Found]:
    """What one detector (name, reader, keys) finds of texts by their length, with every share of edits."""
    (finds,) = (finds for *named, finds in detectors.of(cell) if tuple(named) == which)
    name, reader, keys = which
    rows = []
    for tokens, some in texts.items():
        if reader != NO_READER and tokens > MOST_READ:
            continue
        for share in edits:
            changed = [edited(text, share, index, seed) for index, text in enumerate(some)]
            counts = [
                sum(finds(text, index, fpr, True) for index, text in enumerate(changed)) for fpr in FPRS
            ]
            shares = tuple(clopper_pearson(count, len(some)) for count in counts)
            alarms = None
            if not share and tokens == max(texts):
                false = sum(finds(text, index, FPRS[-1], False) for index, text in enumerate(some))
                alarms = clopper_pearson(false, len(some))
            at = cell.kind, tokens, share, len(some)
            rows.append(Found(cell.arm, name, reader, keys, *at, shares, alarms))
    return rows


@dataclass(frozen=True, slots=True)
class Together:
    """How often answers of one account are found together."""

    answers: int
    edited: float
    trials: int
    share: Interval


def found_together(
    finds: FindsTogether, texts: Sequence[str], answers: int, share: float, trials: int, seed: int
) -> Together:
    """Answers drawn from one account each time, asked about as one question at 1e-5."""
    changed = [edited(text, share, index, seed) for index, text in enumerate(texts)]
    draws = np.random.default_rng(sampling_seed(seed, ACCOUNT, answers, share))
    count = 0
    for trial in range(trials):
        first = trial * OF_ACCOUNT % len(texts)
        places = first + draws.choice(OF_ACCOUNT, size=answers, replace=False)
        count += finds([changed[place] for place in places], first, FPRS[0])
    return Together(answers, share, trials, clopper_pearson(count, trials))


def alarms_of_people(finds: FindsTogether, accounts: int, fpr: float, seed: int) -> dict[str, object]:
    """How many accounts of people are found at a rate; no key wrote any."""
    found = peoples_accounts(accounts, seed)
    count = sum(finds(texts, _NOBODY + number * OF_ACCOUNT, fpr) for number, texts in enumerate(found))
    return {ACCOUNT: "people", "fpr": fpr, "alarms": count, "share": clopper_pearson(count, accounts)}


def peoples_accounts(count: int, seed: int) -> Iterator[list[str]]:
    """Accounts of 5 to 20 texts by people of 30 to 80 words, of which a third are quotations many share."""
    draws = np.random.default_rng(sampling_seed(seed, "accounts of people"))
    words = [one for one in map(words_of, human_documents()) if len(one) > 80]

    def passage() -> str:
        of_one = words[int(draws.integers(len(words)))]
        length = int(draws.integers(30, 81))
        start = int(draws.integers(len(of_one) - length))
        return "".join(of_one[start : start + length]).strip()

    quotations = [passage() for _ in range(50)]
    for _ in range(count):
        size = int(draws.integers(5, 21))
        quoted = draws.random(size) < 1 / 3
        yield [quotations[int(draws.integers(50))] if one else passage() for one in quoted]


_asking: list[Detectors] = []
"""Of a process that asks."""


def prepare(model: str, seed: int, readers: Mapping[str, str], service: MakeService) -> None:
    import torch

    torch.set_num_threads(1)
    read = {name: reader_of(Path(folder)) for name, folder in readers.items()}
    _asking[:] = [Detectors(TextTokenizer.load(model), seed, read, service)]


def detectors_of(cell: Marked) -> list[tuple[str, str, int]]:
    """Name, reader and keys of those that a process which was prepared can ask about a cell."""
    return [(name, reader, keys) for name, reader, keys, _ in _asking[0].of(cell)]


def asked_rows(*given: Any) -> list[Found]:
    """`found_rows` in a process that was prepared."""
    return found_rows(_asking[0], *given)


def asked_together(account: Marked, *given: Any) -> Together:
    return found_together(_asking[0].account(account), *given)


def asked_of_people(account: Marked, *given: Any) -> dict[str, object]:
    return alarms_of_people(_asking[0].account(account), *given)


def tables(rows: Sequence[Found], notes: Sequence[str]) -> list[Table]:
    """Prose by length, then the other kinds."""
    by_length = groups((row for row in rows if row.kind == PROSE), lambda row: row.tokens)
    found = [_table(f"Answers of {tokens} tokens", some, notes) for tokens, some in by_length.items()]
    others = [row for row in rows if row.kind != PROSE]
    return [*found, _table(f"Other kinds, {others[0].tokens} tokens", others, notes)] if others else found


def _table(title: str, rows: Sequence[Found], notes: Sequence[str]) -> Table:
    """A row for each mark, kind and detector, a column for each rate and share of edits."""
    lines = groups(rows, lambda row: (row.arm, row.kind, row.detector, row.reader, row.keys))
    columns: dict[str, Callable[[Sequence[Found]], object]] = {
        "mark": lambda line: title_of(line[0].arm),
        "kind": lambda line: line[0].kind,
        "detector": lambda line: line[0].detector,
        "reader": lambda line: line[0].reader,
        "keys": lambda line: line[0].keys,
    }
    if {row.kind for row in rows} == {PROSE}:
        del columns["kind"]
    for rate, fpr in enumerate(FPRS):
        for number, share in enumerate(sorted({row.edited for row in rows})):
            heading = rate_name(fpr) + (f", {share:.0%} edited" if share else "")
            columns[heading] = partial(_share, number=number, rate=rate)
    columns["wrong keys at 1e-2"] = lambda line: line[0].alarms and line[0].alarms.percent()
    return table_by(title, lines.values(), columns, notes)


def _share(line: Sequence[Found], number: int, rate: int) -> str:
    return line[number].shares[rate].percent()
