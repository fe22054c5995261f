"""Prepares an embedded farm in one process: tables, owner, token and sign-in link.

The command prints one JSON object. Its `token` is that of ONNXFARM_TOKEN, or else the one in the home folder, which is
made if there is none. `code` is null without `--code`, which makes an enrolment code for this machine's node. A
malformed ONNXFARM_TOKEN raises CommandError.
"""

import json
import os
from datetime import timedelta
from itertools import chain, count
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from farm.accounts.models import Team, Token, User
from farm.accounts.services import OWNERS_TEAM, TOKEN_LIFE, create_owner, issue_token, make_sign_in_link
from farm.accounts.states import ALL_OF_A_PERSON
from farm.base.secrecy import HINT_LENGTH, TOKEN_PREFIX, hash_secret
from farm.config.backup_commands import TOKEN
from farm.fleet.services import invite
from farm.runs.models import Run

TOKEN_VARIABLE = "ONNXFARM_TOKEN"
# the name of the token for terminals of this machine
STORED_TOKEN_NAME = "quickstart"
MIN_TOKEN_LENGTH = 24
LINK_LIFE = timedelta(hours=12)


class Command(BaseCommand):
    help = (
        "Migrate, create the owner, and print token, sign-in link, enrolment code and whether there are runs as JSON."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--code", action="store_true", help="also make an enrolment code that approves itself")

    def handle(self, *args: object, **options: object) -> None:
        call_command("migrate", interactive=False, verbosity=0)
        # backups name this folder, so it is there from the beginning
        Path(settings.STORE_DIR).mkdir(parents=True, exist_ok=True)
        owner = create_owner()
        code = None
        if options["code"]:
            _, code = invite(team=Team.objects.get(name=OWNERS_TEAM), by=owner, auto_approve=True)
        opened = {
            "user": owner.username,
            # the person who starts a farm may always sign in to it
            "link": make_sign_in_link(owner, life=LINK_LIFE, is_emergency=not settings.LOCAL_SIGN_IN),
            "token": _accept_chosen_token(owner) or _ensure_stored_token(owner),
            "code": code,
            "has_runs": Run.objects.exists(),
        }
        self.stdout.write(json.dumps(opened))


def _accept_chosen_token(owner: User) -> str | None:
    """Make the token in ONNXFARM_TOKEN valid for the owner, and return it; None if the variable is not set."""
    secret = os.environ.get(TOKEN_VARIABLE)
    if not secret:
        return None
    if not secret.startswith(TOKEN_PREFIX) or len(secret) < MIN_TOKEN_LENGTH:
        raise CommandError(
            f"{TOKEN_VARIABLE} has to begin with {TOKEN_PREFIX} and have at least {MIN_TOKEN_LENGTH} characters; "
            f"unset it and the farm makes its own."
        )
    life = {"expires_at": timezone.now() + TOKEN_LIFE, "revoked_at": None}
    columns = {"user": owner, "name": TOKEN_VARIABLE, "hint": secret[:HINT_LENGTH], "scopes": list(ALL_OF_A_PERSON)}
    Token.objects.update_or_create(digest=hash_secret(secret), defaults=life | columns)
    return secret


def _ensure_stored_token(owner: User) -> str:
    """Return the token in the home folder. If there is none, or it is not valid, make and store a new one."""
    path = Path(settings.HOME) / TOKEN
    if path.exists():
        secret = path.read_text().strip()
        token = Token.objects.filter(digest=hash_secret(secret), user=owner).first()
        if token is not None and token.is_valid:
            return secret
    _, secret = issue_token(owner, ALL_OF_A_PERSON, name=_find_free_name(owner))
    path.touch(mode=0o600)
    path.write_text(secret)
    return secret


def _find_free_name(owner: User) -> str:
    """Return a name that no valid token of the owner has: after a restore, an old token may still be in use."""
    taken_names = set(Token.objects.filter(user=owner, revoked_at=None).values_list("name", flat=True))
    candidates = chain([STORED_TOKEN_NAME], (f"{STORED_TOKEN_NAME} {number}" for number in count(2)))
    return next(name for name in candidates if name not in taken_names)
