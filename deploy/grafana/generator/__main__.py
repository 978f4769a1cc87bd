"""Writes the dashboards: `python -m deploy.grafana.generator [FOLDER]` from the repository's root."""

import json
import sys
from pathlib import Path

from deploy.grafana.generator.detection import DETECTION
from deploy.grafana.generator.engine import ENGINE
from deploy.grafana.generator.generation import GENERATION
from deploy.grafana.generator.keys import KEYS
from deploy.grafana.generator.overview import OVERVIEW

DASHBOARDS = (OVERVIEW, GENERATION, ENGINE, DETECTION, KEYS)


def main() -> None:
    """One JSON file for each dashboard."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "dashboards"
    folder.mkdir(parents=True, exist_ok=True)
    for dashboard in DASHBOARDS:
        path = folder / f"{dashboard.uid}.json"
        path.write_text(json.dumps(dashboard.document(), indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
