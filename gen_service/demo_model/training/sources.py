"""Where the training text comes from: documentation installed here and in Debian's documentation packages."""

import gzip
import os
import subprocess
import sys
import sysconfig
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from gen_service.demo_model.training.prose import converter

PACKAGES = tuple(
    """
    apache2-doc apt-doc aptitude-doc-en autoconf-doc bash-doc bind9-doc cinder-doc clang-19-doc cmake-doc
    cython-doc debian-faq debian-handbook debian-policy debian-reference-en debmake-doc developers-reference
    doc-debian erlang-doc exim4-doc-html fai-doc gap-doc gimp-help-en git-doc harden-doc haskell98-report
    installation-guide-amd64 jargon-text krb5-doc libboost1.81-doc libglib2.0-doc libgtk-3-doc
    libreoffice-help-en-us libssl-doc lilypond-doc-html linux-doc-6.1 llvm-19-doc maint-guide manpages
    manpages-dev maxima-doc mercurial-common neutron-doc nova-doc octave-doc openjdk-17-doc perl-doc
    postfix-doc postgresql-doc-15 puredata-doc python-django-doc python-sqlalchemy-doc python3.11-doc
    qtbase5-doc-html r-doc-html rust-doc sbcl-doc sqlite3-doc user-mode-linux-doc zsh-doc
    """.split()  # noqa: SIM905
)
MAX_FILE_BYTES = 6_000_000


def local_roots() -> dict[str, str]:
    """Label and folder of the documentation that is installed."""
    return {
        "python": sysconfig.get_path("stdlib"),
        "site-packages": sysconfig.get_path("purelib"),
        "man": "/usr/share/man",
        "doc": "/usr/share/doc",
        "info": "/usr/share/info",
        "perl": "/usr/share/perl",
    }


def download(folder: Path) -> list[Path]:
    """The packages' archives in `folder`; missing ones are fetched from the configured Debian mirror."""
    folder.mkdir(parents=True, exist_ok=True)
    for package in PACKAGES:
        if not any(folder.glob(f"{package}_*.deb")):
            subprocess.run(["apt-get", "download", "-q", package], cwd=folder, check=False)  # noqa: S607
    return sorted(folder.glob("*.deb"))


def package_files(archive: Path) -> Iterator[tuple[str, str]]:
    """(name, text) of each convertible file of a Debian package, read without unpacking it to disk."""
    package = archive.name.partition("_")[0]
    command = ["dpkg-deb", "--fsys-tarfile", str(archive)]
    with (
        # It would complain of a closed pipe when the caller has had enough; damage shows as a tar error.
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process,
        tarfile.open(fileobj=process.stdout, mode="r|") as tar,
    ):
        for member in tar:
            if member.isfile() and member.size <= MAX_FILE_BYTES and converter(member.name):
                stream = tar.extractfile(member)
                if stream is not None:
                    yield f"{package}:{member.name.removeprefix('./')}", decode(member.name, stream.read())


def local_files(label: str) -> Iterator[tuple[str, str]]:
    """(name, text) of each convertible file below one of `local_roots`."""
    root = local_roots()[label]
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = sorted(set(subfolders) - {"site-packages"})
        for name in sorted(names):
            path = Path(folder, name)
            # The manual pages of one cloud client would outnumber all the others.
            if not converter(name) or name.startswith("gcloud"):
                continue
            if path.is_file() and path.stat().st_size <= MAX_FILE_BYTES:
                yield f"{label}:{path.relative_to(root)}", decode(name, path.read_bytes())


def decode(name: str, data: bytes) -> str:
    """A file's text; empty where it is damaged, undecodable bytes replaced."""
    if name.endswith(".gz"):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error):
            print(f"skipped a damaged file: {name}", file=sys.stderr)
            return ""
    return data.decode("utf-8", errors="replace")
