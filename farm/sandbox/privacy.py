"""Makes the home of a farm or a node private: no other user of the machine can read it."""

import logging
import os
from pathlib import Path
from typing import Final

log = logging.getLogger(__name__)
OTHERS: Final = 0o077


def make_private(folder: Path) -> None:
    """Make the folder if it is missing, and close it to everybody but its owner.

    This also sets the umask, so that all files that this process writes from now on are private. A folder that cannot
    be closed, such as a container's volume, stays open, and the log says so. Raises OSError where the folder cannot be
    made.
    """
    os.umask(OTHERS)
    folder.mkdir(parents=True, exist_ok=True)
    if not folder.stat().st_mode & OTHERS:
        return
    try:
        folder.chmod(0o700)
    except OSError as problem:
        log.warning("Other users of this machine can read %s, which stays open: %s.", folder, problem.strerror)
    else:
        log.warning("Other users of this machine could read %s; only its owner can now.", folder)
