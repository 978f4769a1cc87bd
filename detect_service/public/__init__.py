"""The public tier: what the operator decides of it, and the document that says how everybody may ask."""

from dataclasses import dataclass

from ttmark.shared.access.scopes import Scope
from ttmark.shared.languages.words import ENGLISH, LANGUAGES
from ttmark.shared.limits.public_allowance import PublicAllowance
from ttmark.shared.schemas.public import PublicLimits, PublicPromises, TextProvenance

PUBLIC_PATH = "/v1/detect/public"
PAGE_PATH = "/check"
DOCUMENT_PATH = "/.well-known/text-provenance.json"
MARKS = ("watermark", "foreign_watermark")


@dataclass(frozen=True, slots=True)
class PublicTier:
    """One rate for everybody, and limits.

    Attributes:
        rate: the false positive rate.
        characters: of the longest text.
        contact: address of who gives out tokens.
        words_per_day: of a token; 0: any.
        guest_words_per_day: of an address without a token; 0: any, None: nobody is answered without one.
        questions: of one asker about a passage.
        allowance: counts what is asked; None: nothing is counted.
    """

    rate: float
    characters: int
    contact: str | None
    words_per_day: int
    guest_words_per_day: int | None
    questions: int
    allowance: PublicAllowance | None

    def described(self, case_key_path: str | None, *, verifies_manifests: bool) -> TextProvenance:
        """The document for everybody; nothing in it depends on keys or on who asks."""
        return TextProvenance(
            operator=self.contact,
            endpoint=PUBLIC_PATH,
            page=PAGE_PATH,
            scope=Scope.DETECT_PUBLIC,
            token_required=self.guest_words_per_day is None,
            false_alarm_rate=self.rate,
            bases=[*MARKS, *["metadata"] * verifies_manifests],
            languages=list(LANGUAGES),
            limits=PublicLimits(
                characters=self.characters,
                words_per_day=self.words_per_day or None,
                words_per_day_without_token=self.guest_words_per_day or None,
                questions_per_passage=self.questions,
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
