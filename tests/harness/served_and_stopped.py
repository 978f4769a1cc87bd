"""A server in a process of its own that is told to stop as soon as it serves."""

import subprocess
import sys
import textwrap


def serve_and_stop(before: str) -> "subprocess.CompletedProcess[str]":
    """The process, after its end; Python code may run before the server starts."""
    program = """
        import os, signal, socket
        from contextlib import asynccontextmanager
        import anyio
        from fastapi import FastAPI
        from ttmark.services.composition.server import serve
        from ttmark.services.settings.base import ServiceSettings

        @asynccontextmanager
        async def lifespan(app):
            async def stop():
                await anyio.sleep(0.2)
                os.kill(os.getpid(), signal.SIGTERM)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(stop)
                yield

        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        serve(FastAPI(lifespan=lifespan), listener, ServiceSettings(drain_seconds=1))
    """
    code = f"{before}\n{textwrap.dedent(program)}"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
