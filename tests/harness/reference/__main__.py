"""`python -m tests.harness.reference`: writes the generated parts of the documentation."""

from pathlib import Path

from tests.harness.reference.command_line import command_line_page
from tests.harness.reference.http_pages import http_pages
from tests.harness.reference.metrics_table import metrics_page
from tests.harness.reference.result_plots import DOCS, pictures
from tests.harness.reference.settings_table import settings_table

BEGIN, END = "<!-- settings: python -m tests.harness.reference -->\n", "<!-- end of settings -->"


def with_settings(page: str, table: str) -> str:
    """A page with its part about settings renewed."""
    before, _, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table}{end}{after}"


def generated() -> dict[Path, str]:
    """What each generated file has to hold, by its path."""
    page, reference = DOCS / "operations/settings.md", DOCS / "reference"
    return {
        page: with_settings(page.read_text(), settings_table()),
        DOCS / "metrics.md": metrics_page(),
        reference / "command-line.md": command_line_page(),
        **{reference / name: page for name, page in http_pages().items()},
        **pictures(),
    }


def main() -> None:
    for path, text in generated().items():
        path.write_text(text)


if __name__ == "__main__":
    main()
