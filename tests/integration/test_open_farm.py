"""Opening an embedded farm: its owner's token is kept, and told from the one of before a restore."""

import io
import json
from pathlib import Path

import pytest
from django.core.management import call_command

from farm.accounts.models import Team, Token
from farm.accounts.states import Role
from tests.conftest import make_user
from tests.integration.access.world import World

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def home(tmp_path: Path, settings: object, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("ONNXFARM_TOKEN", raising=False)
    settings.HOME, settings.STORE_DIR = tmp_path, tmp_path / "store"  # type: ignore[attr-defined]
    return tmp_path


def opening() -> dict[str, object]:
    out = io.StringIO()
    call_command("open_farm", stdout=out)
    answer: dict[str, object] = json.loads(out.getvalue())
    return answer


def opened() -> str:
    return str(opening()["token"])


def test_it_says_whether_there_are_runs() -> None:
    assert opening()["has_runs"] is False
    team, elsewhere = Team.objects.create(name="vision"), Team.objects.create(name="elsewhere")
    people = {"owner": make_user("ada", team=team, role=Role.ADMIN)}
    people["stranger"] = make_user("bob", team=elsewhere, role=Role.ADMIN)
    World(team=team, people=people)
    assert opening()["has_runs"] is True


def names() -> list[str]:
    return list(Token.objects.order_by("pk").values_list("name", flat=True))


def test_the_token_of_the_home_folder_is_used_again() -> None:
    assert opened() == opened()
    assert names() == ["quickstart"]


def test_a_token_whose_file_was_lost_goes_on_and_the_next_has_a_number(home: Path) -> None:
    first = opened()
    (home / "token").unlink()
    assert opened() != first
    assert names() == ["quickstart", "quickstart 2"]
    assert all(token.is_valid for token in Token.objects.all())
