"""`python -m services.healthcheck URL`: exit code 0 when the URL answers 2xx; for images without curl."""

import sys

import httpx


def main() -> int:
    """Exit code for the container's health check."""
    try:
        return 0 if httpx.get(sys.argv[1], timeout=2).is_success else 1
    except httpx.HTTPError:
        return 1


if __name__ == "__main__":
    sys.exit(main())
