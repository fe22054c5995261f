"""Connects an account of this farm with a person of its identity provider. There is no other way to do so."""

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from farm.accounts.models import User
from farm.accounts.openid.people import connect_account
from farm.base.refusals import Refusal


class Command(BaseCommand):
    help = "From now on the provider's person of this subject signs in as this user. The audit log shows subjects."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="user name on this farm")
        parser.add_argument("subject", help="the provider's own name of the person, its claim “sub”")

    def handle(self, *args: object, **options: str) -> None:
        """Connect the account, and name the account that is closed because the person had another.

        Raises CommandError for an unknown user, on a farm without an identity provider, and where `connect_account`
        refuses.
        """
        if settings.OPENID is None:
            raise CommandError("This farm has no identity provider (ONNXFARM_OIDC_ISSUER).")
        user = User.objects.filter(username=options["name"]).first()
        if user is None:
            raise CommandError(f"There is no user “{options['name']}”.")
        try:
            closed = connect_account(user=user, subject=options["subject"], registration=settings.OPENID)
        except Refusal as refusal:
            raise CommandError(str(refusal)) from refusal
        self.stdout.write(f"“{options['subject']}” of {settings.OPENID.name} signs in as {user.username} from now on.")
        if closed is not None:
            self.stdout.write(f"The account {closed.username}, which that person had, is closed.")
