"""`attack.py URL TOKEN FILE KIND CONNECTIONS`: sends dear requests over many connections until it is killed.

KIND: `text`, documents of 380,000 characters against decoys; `batch`, 256 short documents. Writes a line once
all connections have begun to send. One that the service closes is opened again.
"""

import asyncio
import json
import sys
from contextlib import suppress
from pathlib import Path


def bodies(kind: str, text: str) -> list[tuple[str, bytes]]:
    if kind == "batch":
        documents = [{"text": text[i * 1500 : (i + 1) * 1500]} for i in range(256)]
        return [("aligned", json.dumps({"inputs": documents, "beta": 4.0}).encode())]
    long = {"text": (text * 3)[:380_000]}
    return [
        ("aligned", json.dumps({"inputs": [long], "beta": 4.0, "evidence": "blocks"}).encode()),
        ("localized", json.dumps({"inputs": [long], "evidence": "blocks"}).encode()),
        ("direct", json.dumps({"inputs": [long], "evidence": "blocks"}).encode()),
    ]


async def main(url: str, token: str, text: str, kind: str, connections: str) -> None:
    host, port = url.removeprefix("http://").split(":")
    requests = [
        f"POST /v1/detect/{mode} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        + body
        for mode, body in bodies(kind, text)
    ]
    statuses: dict[bytes, int] = {}
    begun = asyncio.Event()
    waiting = int(connections)

    async def connection(number: int) -> None:
        nonlocal waiting
        turn = number
        while True:
            reader, writer = await asyncio.open_connection(host, int(port), limit=2**20)
            with suppress(OSError, asyncio.IncompleteReadError):
                while True:
                    writer.write(requests[turn % len(requests)])
                    if turn == number:
                        waiting -= 1
                        if not waiting:
                            begun.set()
                    turn += 1
                    await writer.drain()
                    head = await reader.readuntil(b"\r\n\r\n")
                    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
                    await reader.readexactly(length)
                    statuses[head[9:12]] = statuses.get(head[9:12], 0) + 1
            writer.close()

    tasks = [asyncio.create_task(connection(number)) for number in range(int(connections))]
    await begun.wait()
    print("sent", flush=True)
    await asyncio.gather(*tasks)


if __name__ == "__main__":
    url, token, file, kind, connections = sys.argv[1:]
    asyncio.run(main(url, token, Path(file).read_text(encoding="utf-8"), kind, connections))
