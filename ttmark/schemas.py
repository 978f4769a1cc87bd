"""What the services are asked, and what they answer: what `Client` takes and gives."""

from ttmark.shared.schemas.detection.content_provenance import ContentProvenanceCheck
from ttmark.shared.schemas.detection.detect import (
    AlignedRequest,
    CombinedRequest,
    CombinedResponse,
    DetectedKey,
    DetectionRequest,
    DetectionResponse,
    DetectionResult,
    DirectRequest,
    Document,
    LocalizedRequest,
    Message,
    Segment,
)
from ttmark.shared.schemas.detection.detection_keys import DetectionKeys
from ttmark.shared.schemas.detection.jobs import JobRequest, JobResult, JobResults, JobStatus
from ttmark.shared.schemas.detection.public import PublicAnswer, PublicQuestion, TextProvenance
from ttmark.shared.schemas.generation.chat import ChatChunk, ChatRequest, ChatResponse
from ttmark.shared.schemas.generation.completions import CompletionRequest, CompletionResponse
from ttmark.shared.schemas.generation.models import ModelList
from ttmark.shared.schemas.generation.watermark_block import WatermarkBlock

__all__ = [
    "AlignedRequest",
    "ChatChunk",
    "ChatRequest",
    "ChatResponse",
    "CombinedRequest",
    "CombinedResponse",
    "CompletionRequest",
    "CompletionResponse",
    "ContentProvenanceCheck",
    "DetectedKey",
    "DetectionKeys",
    "DetectionRequest",
    "DetectionResponse",
    "DetectionResult",
    "DirectRequest",
    "Document",
    "JobRequest",
    "JobResult",
    "JobResults",
    "JobStatus",
    "LocalizedRequest",
    "Message",
    "ModelList",
    "PublicAnswer",
    "PublicQuestion",
    "Segment",
    "TextProvenance",
    "WatermarkBlock",
]
