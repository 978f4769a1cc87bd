"""Settings of the queue that a team shares."""

from pydantic import Field

from ttmark.services.settings_reading import Settings
from ttmark.services.settings_values import Amount


class QueueSettings(Settings):
    """Whether the detection service keeps a queue of documents that were looked at."""

    queue_keep_days: float = Field(
        default=0.0,
        ge=0,
        le=3_650,
        description="Days for which an item of the moderators' queue is kept that nobody changes; 0: there "
        "is no queue.",
    )
    queue_items: Amount = Field(
        default=10_000,
        description="Most items of a tenant, over all replicas; an item takes some 1.5 kB in the store.",
    )
