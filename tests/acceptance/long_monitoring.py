"""Prometheus itself on what deploy/monitoring gives it: the rules, what they say and when, the panels

`python -m tests.acceptance.long_monitoring`; ends with 2, and says so, where Debian's package `prometheus` is missing.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "deploy" / "monitoring"
CANNOT = 2


def main() -> int:
    promtool = shutil.which("promtool")
    if promtool is None:
        print("There is no promtool here: install Debian's package prometheus.", file=sys.stderr)
        return CANNOT
    commands = [("check", "rules", "rules.yaml"), ("test", "rules", "rules-test.yaml")]
    codes = [subprocess.run([promtool, *words], cwd=FOLDER, check=False).returncode for words in commands]
    return int(any(codes) or not _is_parsed(promtool))


def _is_parsed(promtool: str) -> bool:
    """Whether Prometheus parses every expression of the dashboard: as rules, which promtool checks."""
    panels = json.loads((FOLDER / "dashboard.json").read_text())["panels"]
    asked = [target["expr"] for panel in panels for target in panel["targets"]]
    rules = [{"record": f"panel:{number}", "expr": expression} for number, expression in enumerate(asked)]
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        json.dump({"groups": [{"name": "dashboard", "rules": rules}]}, file)
        file.flush()
        done = subprocess.run([promtool, "check", "rules", file.name], check=False)
    print(f"{len(asked)} expressions of the dashboard are parsed." if not done.returncode else "The dashboard is not.")
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
