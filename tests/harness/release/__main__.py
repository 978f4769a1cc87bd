"""`make release`: everything of a release, in `dist/`, from the commit that is checked out."""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.harness.release.files import (
    bill_of_materials,
    build,
    build_images,
    checksums,
    container_engine,
    sign,
)
from tests.harness.release.installed import Wish, install, try_out
from tests.harness.release.source import NoRelease, Source, export, release_notes

ROOT = Path(__file__).resolve().parents[3]


class Steps:
    """Says what is done and how long it took, and what was left out and why."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def done(self, what: str) -> None:
        """A step is over."""
        now = time.monotonic()
        print(f"release: {what} ({now - self._last:.0f} s)", flush=True)
        self._last = now

    def left_out(self, what: str, why: str) -> None:
        """A step is not taken."""
        print(f"release: left out: {what}: {why}", flush=True)


def release(options: argparse.Namespace, work: Path) -> None:
    """Makes every file; `work` is a folder for what is no part of the release."""
    steps, out = Steps(), options.out.resolve()
    source = export(options.source, work / "source", options.url)
    steps.done(f"{source.version} from commit {source.commit[:12]}")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    notes, named = release_notes(source.text("CHANGELOG.md"), source.version)
    if not named and options.need_section:
        raise NoRelease(f"CHANGELOG.md has no section [{source.version}]: rename [Unreleased]")
    if not named:
        steps.left_out(
            "a section of CHANGELOG.md", f"there is no [{source.version}]; the notes are of [Unreleased]"
        )
    (out / "NOTES.md").write_text(notes)
    wheel, sdist = build(source, out)
    steps.done(f"{wheel.name}, {sdist.name}; twine check passes both")
    if not options.url:
        steps.left_out("links of the description", "--url names no repository; they became words")
    try_wheel(options, source, wheel, out, work, steps)
    make_images(options, source, out, steps)
    sums = checksums(out)
    if options.key:
        steps.done(sign(sums, options.key, f"TTMark {source.version} {source.commit}").name)
    else:
        steps.left_out(
            "the signature", "name your key: make release KEY=$HOME/ttmark.key (docs/releasing.md)"
        )
    for path in sorted(out.iterdir()):
        print(f"  {path.stat().st_size:>12,}  {path.name}")


def try_wheel(
    options: argparse.Namespace, source: Source, wheel: Path, out: Path, work: Path, steps: Steps
) -> None:
    """Installs and tries the wheel in each Python; the first one's environment is the bill of materials."""
    if "try" in options.without:
        steps.left_out("the wheel in empty environments, and the bill of materials", "--without try")
        return
    for number, words in enumerate(options.python or [sys.executable]):
        wish = Wish.parse(words)
        python = install(wish, wheel, source.folder / "constraints.txt", work)
        steps.done(f"{python.parents[1].name} has the wheel with [{wish.extras}]")
        if number == 0:
            bill_of_materials(python, source, out / f"ttmark-{source.version}.cdx.json")
            steps.done("the bill of materials")
        steps.done(f"{python.parents[1].name}: {try_out(wish, python, work / f'empty-{number}')}")


def make_images(options: argparse.Namespace, source: Source, out: Path, steps: Steps) -> None:
    """Builds the images, or says why not."""
    engine = container_engine()
    if "images" in options.without:
        steps.left_out("images", "--without images")
    elif engine is None:
        steps.left_out("images", "neither docker nor podman answers here")
    else:
        build_images(engine, source, out / "images.json")
        steps.done("images for this machine's processor; one of another kind builds its own")


def command_line() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--source", type=Path, default=ROOT, help="work tree")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--url", help="the repository's address, as browsers reach it")
    parser.add_argument("--key", type=Path, help="secret key of minisign")
    parser.add_argument(
        "--python", action="append", help="try the wheel there, such as python3.13, or python3.13=detect"
    )
    parser.add_argument(
        "--need-section", action="store_true", help="fail unless CHANGELOG.md has the version's section"
    )
    parser.add_argument("--without", action="append", default=[], choices=["try", "images"])
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; 0: the release is whole, or what it lacks was left out by name."""
    options = command_line().parse_args(argv)
    try:
        with tempfile.TemporaryDirectory(prefix="ttmark-release-") as work:
            release(options, Path(work))
    except NoRelease as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
