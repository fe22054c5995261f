"""A database address as Django's DATABASES entry."""

from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit


def database(url: str, *, home: Path) -> dict[str, object]:
    """The DATABASES entry of `sqlite:///absolute/path` or `postgresql://user:password@host:port/name?option=value`.

    An empty address is the embedded SQLite file in `home`. Raises ValueError for any other scheme.
    """
    parts = urlsplit(url)
    if parts.scheme in ("", "sqlite"):
        return _sqlite(Path(unquote(parts.path)) if url else home / "db.sqlite3")
    if parts.scheme in ("postgres", "postgresql"):
        return {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": unquote(parts.path.removeprefix("/")),
            "USER": unquote(parts.username or ""),
            "PASSWORD": unquote(parts.password or ""),
            "HOST": unquote(parts.hostname or ""),
            "PORT": str(parts.port or ""),
            "OPTIONS": dict(parse_qsl(parts.query)),
        }
    raise ValueError(
        f"ONNXFARM_DATABASE_URL starts with {parts.scheme}://; use sqlite:///absolute/path or postgresql://…"
    )


def _sqlite(path: Path) -> dict[str, object]:
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": path,
        "OPTIONS": {
            "timeout": 30,
            # take the write lock at BEGIN: a later upgrade of a read lock fails at once instead of waiting
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;",
        },
        # a file, so that tests can share it with real worker processes
        "TEST": {"NAME": str(path.with_name(f"test-{path.name}"))},
    }
