"""Build hook that puts minified scripts and styles into the wheel; a checkout serves them as they were written."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import rcssmin
import rjsmin
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SHORTENED: dict[str, Callable[[str], str]] = {".js": rjsmin.jsmin, ".css": rcssmin.cssmin}


class Minified(BuildHookInterface[Any]):
    """Minifies dashboard/static, which pyproject.toml leaves out of the wheel; *.min.js files are copied unchanged."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root, made = Path(self.root), Path(self.root) / "build" / "minified"
        for path in sorted((root / "dashboard" / "static").rglob("*.*s")):
            place = path.relative_to(root)
            if not path.name.endswith(".min.js"):
                path = made / place
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(SHORTENED[path.suffix]((root / place).read_text("utf-8")), "utf-8")
            build_data["force_include"][str(path)] = str(place)
