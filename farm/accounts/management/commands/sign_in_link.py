"""Print a one-time sign-in link: of a person, or without a name of the owner, who is created where there is none."""

import json

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from farm.accounts.models import User
from farm.accounts.services import create_owner, issue_token, make_sign_in_link
from farm.accounts.states import ALL_OF_A_PERSON


class Command(BaseCommand):
    help = "Print a link that signs a person in once. Without a name: the owner, created if there is none."
    # `check` says what is wrong with a farm's settings: its imports take longer than all of this
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", nargs="?", default="", help="user name")
        parser.add_argument(
            "--emergency", action="store_true", help="let it open where one-time links are switched off"
        )
        parser.add_argument("--token", action="store_true", help="issue a token too and print both as JSON")

    def handle(self, *args: object, **options: object) -> None:
        """Write the link to stdout, or with `--token` a JSON object with `user`, `link` and `token`.

        Raises CommandError for an unknown user or a closed account, and without `--emergency` where one-time links are
        switched off.
        """
        name = options["name"]
        user = User.objects.filter(username=name).first() if name else create_owner()
        if user is None:
            raise CommandError(f"There is no user “{name}”; without a name the link is for the owner.")
        if not user.is_active:
            raise CommandError(f"The account of {user.username} is closed; an administrator may invite them again.")
        if not (settings.LOCAL_SIGN_IN or options["emergency"]):
            raise CommandError(
                "One-time links are switched off on this farm (ONNXFARM_LOCAL_SIGN_IN): add --emergency."
            )
        link = make_sign_in_link(user, is_emergency=bool(options["emergency"]))
        if not options["token"]:
            self.stdout.write(link)
            return
        _, secret = issue_token(user, ALL_OF_A_PERSON, name="command line")
        self.stdout.write(json.dumps({"user": user.username, "link": link, "token": secret}))
