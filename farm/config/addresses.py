"""The addresses that the farm of a home folder was started with last, for commands that are typed beside it.

`onnxfarm serve --port 8100` tells its own processes where they are; `manage.py sign_in_link`, in another terminal,
reads it here instead of assuming the default port.
"""

import json
from pathlib import Path

FILE = "addresses.json"


def keep(home: Path, *, public_url: str, gateway_url: str) -> None:
    """Write both, whole or not at all."""
    draft = home / f".{FILE}.part"
    draft.write_text(json.dumps({"public_url": public_url, "gateway_url": gateway_url}) + "\n")
    draft.replace(home / FILE)


def read(home: Path) -> dict[str, str]:
    """Those that were kept; nothing where there are none, or none that are addresses."""
    try:
        kept = json.loads((home / FILE).read_text())
    except (OSError, ValueError):
        return {}
    if not isinstance(kept, dict):
        return {}
    return {name: url for name, url in kept.items() if isinstance(url, str) and url.startswith(("http://", "https://"))}
