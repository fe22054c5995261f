"""Database addresses as people write them."""

from pathlib import Path

import pytest

from farm.config.environment import make_database_settings

HOME = Path("/srv/farm")


def test_no_address_is_sqlite_in_the_home_folder() -> None:
    entry = make_database_settings("", home=HOME)
    assert entry["ENGINE"] == "django.db.backends.sqlite3"
    assert entry["NAME"] == HOME / "db.sqlite3"
    assert entry["OPTIONS"]["transaction_mode"] == "IMMEDIATE"


def test_a_sqlite_address_names_its_file() -> None:
    assert make_database_settings("sqlite:///data/the%20farm.sqlite3", home=HOME)["NAME"] == Path(
        "/data/the farm.sqlite3"
    )


def test_a_postgresql_address_is_taken_apart() -> None:
    entry = make_database_settings(
        "postgresql://farm:p%40ss%2Fword@db.example:5433/bench?sslmode=verify-full", home=HOME
    )
    known = {name: entry[name] for name in ("NAME", "USER", "PASSWORD", "HOST", "PORT", "OPTIONS")}
    assert known == {
        "NAME": "bench",
        "USER": "farm",
        "PASSWORD": "p@ss/word",
        "HOST": "db.example",
        "PORT": "5433",
        "OPTIONS": {"sslmode": "verify-full"},
    }


def test_a_socket_is_named_behind_the_question_mark() -> None:
    entry = make_database_settings("postgres://farm@/farm?host=/run/postgresql", home=HOME)
    assert (entry["HOST"], entry["OPTIONS"]["host"]) == ("", "/run/postgresql")


def test_another_database_is_refused_with_what_to_write_instead() -> None:
    with pytest.raises(ValueError, match="starts with mysql://; use sqlite:///absolute/path or postgresql"):
        make_database_settings("mysql://farm@db/farm", home=HOME)
