"""Volumes of the stack on small file systems of their own, which a test may fill."""

import subprocess
from pathlib import Path

import yaml

DISKS = {
    "redis": (64, "uid=999,gid=1000"),
    "gen-state": (16, "uid=10001"),
    "detect-state": (16, "uid=10001"),
    "audit": (64, "uid=10001"),
    "prometheus": (512, "uid=65534"),
    "alertmanager": (16, "uid=65534"),
}
"""MiB and owner of each volume that a service writes to. Prometheus reserves 128 MiB at a time."""


class SmallDisks:
    """Mounts them in `folder`; they outlive the containers, as a disk does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def mount(self) -> None:
        """Makes them anew, empty."""
        self.unmount()
        for name, (size, owner) in DISKS.items():
            place = self.folder / name
            place.mkdir(parents=True, exist_ok=True)
            options = f"size={size}m,mode=700,{owner}"
            subprocess.run(["mount", "-t", "tmpfs", "-o", options, "ttmark-stack", place], check=True)

    def unmount(self) -> None:
        """Takes away those that are there."""
        for name in DISKS:
            if (self.folder / name).is_mount():
                subprocess.run(["umount", self.folder / name], check=True)

    def folders(self) -> dict[str, Path]:
        """Where each is filled, by its volume's name."""
        return {f"the volume {name}": self.folder / name for name in DISKS}

    def override(self) -> str:
        """What a Compose file says of them."""
        bound = {
            name: {"driver_opts": {"type": "none", "o": "bind", "device": f"{self.folder / name}"}}
            for name in DISKS
        }
        return yaml.safe_dump({"volumes": bound})
