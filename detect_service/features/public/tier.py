"""The public tier: what the operator decides of it, and the document that says how everybody may ask."""

from dataclasses import dataclass
from typing import ClassVar

from ttmark.detect_service.features.public.public_allowance import PublicAllowance, PublicBudget
from ttmark.shared.access.scopes import Scope
from ttmark.shared.languages.words import ENGLISH, LANGUAGES
from ttmark.shared.schemas.detection.public import PublicLimits, PublicPromises, TextProvenance

PUBLIC_PATH = "/v1/detect/public"
PAGE_PATH = "/check"
MARKS = ("watermark", "foreign_watermark")


@dataclass(frozen=True, slots=True)
class PublicTier:
    """One rate for everybody, and limits.

    Attributes:
        contact: address of who gives out tokens.
        guests: whether people are answered without a token.
        allowance: counts what is asked; None: nothing is counted.
        characters: of the longest text: a long article. Whoever has longer ones asks about parts.
    """

    rate: float
    contact: str | None
    budget: PublicBudget
    guests: bool
    allowance: PublicAllowance | None
    characters: ClassVar[int] = 20_000

    def described(self, case_key_path: str | None, *, verifies_manifests: bool) -> TextProvenance:
        """The document for everybody; nothing in it depends on keys or on who asks."""
        return TextProvenance(
            operator=self.contact,
            endpoint=PUBLIC_PATH,
            page=PAGE_PATH,
            scope=Scope.DETECT_PUBLIC,
            token_required=not self.guests,
            false_alarm_rate=self.rate,
            bases=[*MARKS, *["metadata"] * verifies_manifests],
            languages=list(LANGUAGES),
            limits=PublicLimits(
                characters=self.characters,
                words_per_day=self.budget.token_words or None,
                words_per_day_without_token=(self.guests and self.budget.address_words) or None,
                questions_per_passage=self.budget.asker,
            ),
            promises=PublicPromises(
                found=f"The text contains passages that carry a mark. {ENGLISH.say('found.caution')}",
                not_found=f"No mark was found. {ENGLISH.say('none.caution')}",
                too_short="Nothing was found, and marked texts of that length often show nothing. "
                + ENGLISH.say("short.caution"),
            ),
            case_key=case_key_path,
            description="/openapi.json",
        )
