"""Writes files that only their owner may read: keys, tokens, and answers that wait to be sent."""

import os
from pathlib import Path


def write_private_file(path: Path, text: str) -> None:
    """Write a file that only its owner may read, atomically; missing folders are created. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
