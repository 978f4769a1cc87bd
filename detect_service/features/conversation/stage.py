"""Messages of one conversation are asked about together."""

from ttmark.detect_service.features.conversation.conversation import ConversationExamination
from ttmark.detect_service.stage import VerdictStage

STAGE = VerdictStage("conversation", conversation=ConversationExamination)
