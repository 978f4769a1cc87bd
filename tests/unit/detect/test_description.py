"""What the service says of itself."""

from collections.abc import Callable
from typing import Any


async def test_the_description_is_valid_in_the_version_that_it_declares(
    service: Any, check_description: Callable[[dict[str, Any]], None]
) -> None:
    check_description((await service.client.get("/openapi.json")).json())
