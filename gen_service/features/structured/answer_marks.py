"""The marks of a served model's answers: what its chat template says of them, as its tokens show it."""

import hashlib
from dataclasses import dataclass, replace

from ttmark.gen_service.api.conversation.chat_template import ChatTemplate
from ttmark.gen_service.api.plan.served_model import ServedModel
from ttmark.gen_service.features.structured.formats.marks import Marks
from ttmark.gen_service.features.structured.formats.tool_formats import ToolFormat
from ttmark.gen_service.features.structured.grammars.json_grammar import JsonGrammars
from ttmark.gen_service.features.structured.learned_format import learned_of
from ttmark.gen_service.features.structured.reasoning import Reasoning, ReasoningRule, Thoughts, thoughts_of
from ttmark.shared.tokenization import TextTokenizer


@dataclass(frozen=True, slots=True)
class AnswerMarks:
    """How answers say what is reasoning, words and calls.

    Attributes:
        thoughts: the marks of reasoning as they show in the text; None: there are none.
        tools: how the model calls tools, as it shows in the text; None: `no_tools` says why not.
        opening: what a prompt ends in that has begun the reasoning.
    """

    special: Marks
    thoughts: Thoughts | None
    tools: ToolFormat | None
    no_tools: str
    opening: str

    def reasoning(self, prompt: str) -> Reasoning | None:
        if self.thoughts is None:
            return None
        opened = bool(self.opening) and prompt.rstrip().endswith(self.opening)
        return Reasoning(opened, self.thoughts, self.special)


def answer_marks(
    template: ChatTemplate | None, tokenizer: TextTokenizer, ends: tuple[int, ...], rule: ReasoningRule
) -> AnswerMarks:
    """What a template says of answers, in a model's tokens; `ends` end a text."""
    known = template.with_tools if template else None
    learned, source = (learned_of(known), known.source) if known else (None, "")
    form = learned.tools if learned else None
    thoughts = thoughts_of(source, learned.thoughts if learned else None, rule)
    if template is not None and template is not known and thoughts is None:
        thoughts = thoughts_of(template.source, learned_of(template).thoughts, rule)
    written = [] if thoughts is None else [thoughts.opening, thoughts.close, thoughts.start, thoughts.stop]
    added = tokenizer.backend.get_added_tokens_decoder().items()
    special = {token.content: id_ for id_, token in added if token.special}
    marks = Marks(special, [*written, *(form.marks if form else ())], ends)
    if form is not None:
        if thoughts is not None and thoughts.opening and form.lead.startswith(thoughts.opening):
            # What stands there where there are no thoughts.
            form = replace(form, lead=form.lead.partition(thoughts.close)[2].lstrip() or form.lead)
        if marks.ends_in(form.lead):
            form = replace(form, lead=form.lead.partition(">")[2].lstrip() or form.lead)
        several = form.between is not None and not marks.ends_in(form.between)
        form = replace(form, between=form.between if several else None).changed(marks.encoded)
    encoded = tuple(map(marks.encoded, written))
    digest = hashlib.sha256(source.encode()).hexdigest()[:12]
    why = f"not available: how this model's chat template (sha256 {digest}) writes calls was not learned"
    return AnswerMarks(
        marks,
        Thoughts(*encoded) if any(encoded) else None,
        form,
        f"{why}; tried: {learned.refusal if learned else ''}",
        thoughts.opening if thoughts else "",
    )


class AnsweringModel:
    """How a served model answers."""

    def __init__(self, model: ServedModel, rule: ReasoningRule = "auto") -> None:
        self.generator = model.generator
        tokenizer, ends = model.generator.tokenizer, model.generator.eos_token_ids
        self.chats = model.chat_template is not None
        self.grammars = JsonGrammars(tokenizer, ends)
        self.answers = answer_marks(model.chat_template, tokenizer, ends, rule)
