"""What deploy/kubernetes renders to, against Kubernetes' own schemas: `python -m tests.acceptance.long_kubernetes`.

Ends with 2, and says so, where neither kubectl nor kustomize is there; kubernetes-validate comes from PyPI.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import yaml

FOLDER: Final = Path(__file__).parents[2] / "deploy" / "kubernetes"
OVERLAYS: Final = ("small", "large")
VALIDATE: Final = "kubernetes-validate==1.37.0"
CANNOT: Final = 2


def renderer() -> list[str]:
    """The command that renders an overlay's folder; empty where there is none."""
    known = (["kustomize", "build"], ["kubectl", "kustomize"])
    return next((words for words in known if shutil.which(words[0])), [])


def main() -> int:
    program = renderer()
    if not program:
        print("There is neither kustomize nor kubectl here.", file=sys.stderr)
        return CANNOT
    codes = [_check(program, name) for name in OVERLAYS]
    return int(any(codes))


def _check(program: list[str], name: str) -> int:
    """Renders an overlay, checks it against the schemas, and that nothing in it has rights that it does not need."""
    rendered = subprocess.run([*program, str(FOLDER / name)], check=True, capture_output=True, text=True).stdout
    loose = [one for document in yaml.safe_load_all(rendered) for one in _loose(document)]
    print(
        f"{name}: {len(list(yaml.safe_load_all(rendered)))} objects; with rights to spare: {', '.join(loose) or 'none'}"
    )
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(rendered)
        file.flush()
        words = ["uv", "tool", "run", "--quiet", "--from", VALIDATE, "kubernetes-validate", "--strict", file.name]
        return subprocess.run(words, check=False).returncode or int(bool(loose))


def _loose(document: dict[str, Any]) -> list[str]:
    """Containers of ours that may be root, gain rights, write their root file system, or keep a capability."""
    pod = document.get("spec", {}).get("template", {}).get("spec")
    if pod is None:
        return []
    found = []
    for container in pod["containers"]:
        walls = container.get("securityContext", {})
        is_tight = walls.get("readOnlyRootFilesystem") or container["name"] == "database"
        is_tight = is_tight and walls.get("allowPrivilegeEscalation") is False
        is_tight = (
            is_tight and walls.get("capabilities") == {"drop": ["ALL"]} and pod["securityContext"]["runAsNonRoot"]
        )
        found += [] if is_tight else [container["name"]]
    return found


if __name__ == "__main__":
    sys.exit(main())
