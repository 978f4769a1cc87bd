"""`python -m ttmark.services.healthcheck URL`: exit code 0 for an answer of 2xx; for images without curl."""

import sys

import httpx


def answers(url: str) -> bool:
    """Whether the URL is answered with 2xx within two seconds."""
    try:
        return httpx.get(url, timeout=2).is_success
    except httpx.HTTPError:
        return False


if __name__ == "__main__":
    sys.exit(not answers(sys.argv[1]))
