"""Files of the store that no row names any more: a crash between a row's end and its file's leaves one behind."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from django.conf import settings

from farm.registry.models import Blob
from farm.registry.services.removal import remove_file
from farm.registry.storage import DRAFT_LIFE_S, OF_THE_FARM

BUDGET_S: Final = 20.0
NAME_LENGTH: Final = 64


def clear_orphans(*, older_than_s: float = DRAFT_LIFE_S, budget_s: float = BUDGET_S) -> int:
    """Removes them, folder by folder and under their team's lock; answers how many. A file of today stays: whoever
    keeps one may not have written its row yet."""
    until = time.monotonic() + budget_s
    limit = time.time() - older_than_s
    removed = 0
    for team_id, folder in _folders():
        if time.monotonic() > until:
            break
        old = {
            path.name for path in folder.iterdir() if len(path.name) == NAME_LENGTH and path.lstat().st_mtime < limit
        }
        known = Blob.objects.filter(team=team_id, sha256__in=old).values_list("sha256", flat=True)
        for sha256 in sorted(old - set(known)):
            remove_file(team_id=team_id, sha256=sha256)
            removed += 1
    return removed


def _folders() -> Iterator[tuple[int, Path]]:
    """The folders of teams' files with their team's number, in an order that begins elsewhere each day."""
    store = Path(settings.STORE_DIR)
    teams = [path for path in store.iterdir() if path.name.isdecimal()] if store.is_dir() else []
    found = [(int(team.name), folder) for team in teams if int(team.name) != OF_THE_FARM for folder in team.iterdir()]
    found = sorted((one for one in found if one[1].is_dir()), key=lambda one: str(one[1]))
    start = int(time.time() // 86_400) * 97 % len(found) if found else 0
    return iter(found[start:] + found[:start])
