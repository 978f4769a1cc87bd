"""`python -m tests.harness.reference`: writes the generated parts of the documentation."""

from pathlib import Path

from tests.harness.reference.metrics_table import metrics_page
from tests.harness.reference.settings_table import settings_table

DOCS = Path(__file__).parents[3] / "docs"
BEGIN, END = "<!-- settings: python -m tests.harness.reference -->\n", "<!-- end of settings -->"


def with_settings(guide: str) -> str:
    """The operations guide with its table of settings renewed."""
    before, _, rest = guide.partition(BEGIN)
    _, end, after = rest.partition(END)
    return f"{before}{BEGIN}{settings_table()}{end}{after}"


def main() -> None:
    """Both files."""
    guide = DOCS / "operations.md"
    guide.write_text(with_settings(guide.read_text()))
    (DOCS / "metrics.md").write_text(metrics_page())


if __name__ == "__main__":
    main()
