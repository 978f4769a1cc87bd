"""`python -m ttmark.services.healthcheck URL`: exit code 0 for an answer of 2xx; for images without curl.

With the standard library alone: it starts every five seconds in each container, and to import httpx
would be most of its work.
"""

import sys
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit


def answers(url: str) -> bool:
    """Whether the URL is answered with 2xx within two seconds."""
    where = urlsplit(url)
    connection = HTTPConnection(where.netloc, timeout=2)
    try:
        connection.request("GET", where.path)
        return connection.getresponse().status // 100 == 2
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(not answers(sys.argv[1]))
