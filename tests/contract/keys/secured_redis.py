"""A server that runs with exactly the files of `deploy/redis`."""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

from tests.harness.imports import ROOT

DEPLOY = ROOT / "deploy" / "redis"


@dataclass
class SecuredRedis:
    """The server and the folder that `provision.sh` made."""

    server: Any
    folder: Path
    confirms_writes: bool

    @property
    def port(self) -> int:
        port: int = self.server.port
        return port

    def url(self, role: str) -> str:
        url = (self.folder / f"{role}.url").read_text().strip()
        return url if self.confirms_writes else url.replace("&durability=aof", "")

    def client(self, role: str) -> redis.Redis:
        password = self.url(role).split(":")[2].split("@")[0]
        ca = str(self.folder / "ca.crt")
        return redis.Redis(
            host="127.0.0.1", port=self.port, ssl=True, ssl_ca_certs=ca, username=role, password=password
        )


def start_secured(start_redis: Any, folder: Path, port: int, *, confirms_writes: bool) -> SecuredRedis:
    """Provisions and starts it; without WAITAOF, which confirms writes, it writes each change at once."""
    subprocess.run(
        [DEPLOY / "provision.sh", folder, "127.0.0.1"], check=True, env=os.environ | {"PORT": str(port)}
    )
    config = (DEPLOY / "redis.conf").read_text().replace("/etc/redis/secrets", str(folder / "server"))
    config = config.replace("dir /data", f"dir {folder}")
    if not confirms_writes:
        users = folder / "server" / "users.acl"
        users.write_text(re.sub(r" \+(waitaof|client\|setinfo)", "", users.read_text()))
        config = config.replace("appendfsync everysec", "appendfsync always")
    (folder / "redis.conf").write_text(config)
    server = start_redis(str(folder / "redis.conf"), folder=folder, port=port, tls=True)
    return SecuredRedis(server, folder, confirms_writes)
