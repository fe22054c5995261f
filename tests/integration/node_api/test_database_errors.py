"""A database that is away, or that cannot store what it is given: answers in words, no stack trace."""

import json

import pytest
from django.db import DataError, InterfaceError, OperationalError
from django.http import HttpRequest
from ninja import NinjaAPI
from ninja.testing import TestClient
from psycopg.errors import DivisionByZero, NumericValueOutOfRange, StringDataRightTruncation

from farm.base import errors

PROBLEMS = [
    (DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes"), 422, "NUL"),
    (OperationalError("connection refused"), 503, "is not responding"),
    (InterfaceError("connection already closed"), 503, "is not responding"),
]


@pytest.mark.parametrize(
    ("raised", "words"),
    [(NumericValueOutOfRange(), "a number"), (StringDataRightTruncation(), "a text"), (DivisionByZero(), "a value")],
)
def test_what_cannot_be_stored_is_named(raised: Exception, words: str) -> None:
    problem = DataError("…")
    problem.__cause__ = raised
    assert words in json.loads(errors.answer_unstorable_value(HttpRequest(), problem).content)["detail"]


@pytest.mark.parametrize(("problem", "status", "words"), PROBLEMS)
def test_the_api_says_what_is_wrong_with_the_database(problem: Exception, status: int, words: str) -> None:
    api = NinjaAPI(urls_namespace=f"database-{type(problem).__name__}")
    errors.install_error_handlers(api)

    @api.get("/")
    def broken(request: HttpRequest) -> None:
        raise problem

    answer = TestClient(api).get("/")
    assert answer.status_code == status
    assert words in answer.json()["detail"]
