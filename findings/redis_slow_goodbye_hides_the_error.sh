#!/usr/bin/env bash
# redis 8.1.0 (redis.asyncio, Python 3.11): by TLS, closing a connection waits for the server's own goodbye (close_notify), as asyncio's
# wait_closed does. Where a server refuses while a connection is opened (here the number of the database) and is slow to say goodbye, the
# caller reads "Timed out closing connection" and not why it was refused; the socket stays open for up to 30 s more.
# Prints both errors: of a server that says goodbye, and of one that does not. Fails if they are the same.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
cd "$dir"
openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 1 -subj /CN=localhost \
  -addext subjectAltName=IP:127.0.0.1 2>/dev/null
python3 -m venv venv
venv/bin/pip -q install "redis==8.1.0"
venv/bin/python - <<'PY'
import asyncio
import ssl

from redis.asyncio.connection import SSLConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("cert.pem", "key.pem")


async def refused(hears: bool) -> str:
    """What is raised where the server refuses database 99; unless it `hears`, it reads nothing after that."""

    async def serve(reader, writer):
        await reader.readuntil(b"99\r\n")
        if not hears:
            writer.transport.pause_reading()
        writer.write(b"-ERR unknown\r\n-ERR unknown\r\n-ERR DB index is out of range\r\n")
        await writer.drain()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    connection = SSLConnection(
        port=server.sockets[0].getsockname()[1], host="127.0.0.1", db=99, protocol=2, ssl_ca_certs="cert.pem",
        socket_connect_timeout=1, retry=Retry(NoBackoff(), 0),
    )
    try:
        await connection.connect()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "let in"


told = [asyncio.run(refused(hears)) for hears in (True, False)]
print(*told, sep="\n")
assert "out of range" in told[0] and "Timed out closing" in told[1], "CHANGED"
PY
