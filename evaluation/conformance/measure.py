"""The figures of a conformance run, section by section."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ttmark.evaluation.adversaries.catalogue import first_part, retyped, sentences_deleted, without_markup
from ttmark.evaluation.adversaries.characters import INVISIBLE
from ttmark.evaluation.conformance.answer_language import NAMES, WITHOUT_SPACES, language_of
from ttmark.evaluation.conformance.figures import Figure, figures_of
from ttmark.evaluation.conformance.plan import (
    CHAT,
    FALSE_RATES,
    FOUND_RATES,
    PLAIN,
    SAMPLINGS,
    TextCounts,
    UserMessage,
    marked_cell,
    prompt_of,
    prompts,
    unmarked_cell,
)
from ttmark.evaluation.experiment_cells import sampling_seed
from ttmark.evaluation.quality.equivalence import Verdict
from ttmark.evaluation.quality.measures import compare, measured
from ttmark.evaluation.report import groups
from ttmark.evaluation.run_folder import DEPLOYED, GeneratedText, Questions, Run
from ttmark.evaluation.text_edits import EDITS, Edit, Material
from ttmark.evaluation.unmarked_texts import TextSet, human_documents
from ttmark.shared.keys.held_keys import UnlockedKey, UnlockedVersion
from ttmark.shared.keys.key_codec import derive_prf_keys
from ttmark.shared.tokenization import TextTokenizer

FRESH_SECTION = "false positives under fresh keys"
DEPLOYED_SECTION = "false positives under the deployed key"
SAMPLING, LENGTH, LANGUAGE, KIND, EDIT = "sampling", "length", "language", "kind of text", "edit"
ALL = "all texts"
SAMPLING_NAMES = {CHAT: f"chat ({SAMPLINGS[CHAT]})", PLAIN: f"OpenAI's default ({SAMPLINGS[PLAIN]})"}

CONFORMANCE_EDITS: Mapping[str, tuple[Edit, float]] = {
    "none": (lambda text, *_: text, 0.0),
    "10 % of the words edited": (EDITS["mix"], 0.10),
    "20 % of the words edited": (EDITS["mix"], 0.20),
    "10 % of the words deleted": (EDITS["delete"], 0.10),
    "a third of the sentences deleted": (sentences_deleted, 1 / 3),
    "first half alone": (first_part, 0.5),
    "half of the text by people, around it": (EDITS["dilute"], 0.5),
    "four fifths by people, around it": (EDITS["dilute"], 0.8),
    "30 % rewritten in runs": (EDITS["rewrite"], 0.3),
    "quotes, dashes and spaces retyped": (retyped, 1.0),
    "markup and line breaks removed": (without_markup, 1.0),
    "zero-width spaces in every word": (INVISIBLE["zero-width spaces"], 1.0),
    "look-alike letters throughout": (INVISIBLE["look-alike letters"], 1.0),
}
"""Of words: one third each replaced, deleted, followed by a new one. None rephrases or translates."""


@dataclass(frozen=True, slots=True)
class MarkedAnswer:
    """A marked answer as its reader gets it."""

    prompt: UserMessage
    token_ids: tuple[int, ...]
    text: str


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """A run's figures and what they are of.

    Attributes:
        sets: of texts without a mark, those of the model included.
        spoken: by language asked in: answers that are in it, and answers.
        tokens: of all marked answers.
        quality: marked answers beside unmarked ones.
    """

    figures: tuple[Figure, ...]
    sets: tuple[TextSet, ...]
    spoken: dict[str, tuple[int, int]]
    tokens: int
    quality: tuple[Verdict, ...]


@dataclass(frozen=True, slots=True)
class Conformance:
    """Measures one deployed key on one model.

    Attributes:
        sets: of texts without a mark, besides the model's.
    """

    run: Run
    questions: Questions[UnlockedKey]
    tokenizer: TextTokenizer
    key: UnlockedKey
    plan: TextCounts
    sets: Sequence[TextSet]

    def measure(self) -> MeasuredRun:
        """Everything; what was measured before is read from the run's folder."""
        answers = {sampling: self._answers(sampling) for sampling in self.plan.answers}
        unmarked = self.run.texts(unmarked_cell(self.plan), self.plan.unmarked)
        own = tuple(self._text(one.token_ids) for one in unmarked)
        sets = (*self.sets, TextSet("the model's unmarked answers", "answers of the model, no mark", own))
        figures = [*self._false_positives(sets), *self._found(answers)]
        return MeasuredRun(
            tuple(figures),
            sets,
            _spoken(answers[CHAT]),
            sum(len(one.token_ids) for of_sampling in answers.values() for one in of_sampling),
            self._quality(unmarked),
        )

    def _quality(self, unmarked: Sequence[GeneratedText]) -> tuple[Verdict, ...]:
        """Of the chat answers to the prompts that both have; answers to one prompt are a cluster."""
        marked = self.run.texts(marked_cell(self.plan, CHAT, self.key.profile), self.plan.answers[CHAT])
        both = min(len(marked), len(unmarked))
        with_mark, without = (measured(of[:both], self.plan.tokens) for of in (marked, unmarked))
        return tuple(compare(with_mark, without, [number % len(prompts()) for number in range(both)]))

    def _answers(self, sampling: str) -> list[MarkedAnswer]:
        cell = marked_cell(self.plan, sampling, self.key.profile)
        made = self.run.texts(cell, self.plan.answers[sampling])
        return [MarkedAnswer(prompt_of(one.index), one.token_ids, self._text(one.token_ids)) for one in made]

    def _text(self, token_ids: Sequence[int]) -> str:
        return self.tokenizer.decode(token_ids)

    def _false_positives(self, sets: Sequence[TextSet]) -> Iterator[Figure]:
        deployed, fresh = [], []
        for one in sets:
            asked = [(DEPLOYED, self.key, text) for text in one.texts]
            deployed.append(self.questions.answers(f"{one.name}, deployed key", asked))
            asked = [
                (f"fresh/{one.name}/{number}/{again}", self._fresh_key(one.name, number, again), text)
                for number, text in enumerate(one.texts)
                for again in range(self.plan.fresh_keys)
            ]
            fresh.append(self.questions.answers(f"{one.name}, fresh keys", asked))
        for section, found in ((FRESH_SECTION, fresh), (DEPLOYED_SECTION, deployed)):
            yield from figures_of(section, ALL, np.concatenate(found), FALSE_RATES)
            for one, log10_p in zip(sets, found, strict=True):
                yield from figures_of(section, one.name, log10_p, FALSE_RATES)

    def _fresh_key(self, *parts: object) -> UnlockedKey:
        """A key like the deployed one, with as many versions, that marked nothing."""
        versions = []
        for version in self.key.versions:
            name = "/".join(map(str, ("conformance", self.run.seed, *parts, version.version)))
            secret = hashlib.sha256(name.encode()).digest()
            prf_keys = derive_prf_keys(secret, self.key.profile)
            versions.append(UnlockedVersion(version.version, version.state, *prf_keys))
        return UnlockedKey(self.key.key_id, self.key.tenant, self.key.profile, 1, tuple(versions))

    def _found(self, answers: dict[str, list[MarkedAnswer]]) -> Iterator[Figure]:
        for sampling, of_sampling in answers.items():
            yield from self._rows(SAMPLING, SAMPLING_NAMES[sampling], [one.text for one in of_sampling])
        for sampling, of_sampling in answers.items():
            for length in self.plan.lengths:
                cut = [one.token_ids[:length] for one in of_sampling if len(one.token_ids) >= length]
                yield from self._rows(LENGTH, f"{sampling}, {length} tokens", list(map(self._text, cut)))
        chat = answers[CHAT]
        yield from self._by(chat, KIND, lambda one: one.kind, lambda one: one.language == "en")
        yield from self._by(chat, LANGUAGE, lambda one: NAMES[one.language], lambda one: one.kind == "prose")
        material = Material.of(human_documents())
        spaced = [one for one in chat if one.prompt.language not in WITHOUT_SPACES]
        for name, (edit, share) in CONFORMANCE_EDITS.items():
            generator = np.random.default_rng(sampling_seed(self.run.seed, "conformance", name))
            yield from self._rows(EDIT, name, [edit(one.text, share, material, generator) for one in spaced])

    def _by(
        self,
        answers: Sequence[MarkedAnswer],
        section: str,
        name: Callable[[UserMessage], str],
        wanted: Callable[[UserMessage], bool],
    ) -> Iterator[Figure]:
        by_name = groups((one for one in answers if wanted(one.prompt)), lambda one: name(one.prompt))
        for group, of_group in by_name.items():
            yield from self._rows(section, group, [one.text for one in of_group])

    def _rows(self, section: str, name: str, texts: Sequence[str]) -> Iterator[Figure]:
        asked = [(DEPLOYED, self.key, text) for text in texts]
        yield from figures_of(section, name, self.questions.answers(f"{section}: {name}", asked), FOUND_RATES)


def _spoken(answers: Sequence[MarkedAnswer]) -> dict[str, tuple[int, int]]:
    spoken: dict[str, tuple[int, int]] = {}
    for one in answers:
        if one.prompt.kind == "prose":
            language = one.prompt.language
            yes, of = spoken.get(language, (0, 0))
            spoken[language] = (yes + (language_of(one.text) == language), of + 1)
    return spoken
