"""The steps of setting up a farm (address, mail, backup, sign-in, first node, in this order), each checked against the
farm's present state."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.utils import timezone

from farm.accounts.selectors import count_people_who_signed_in, last_backup
from farm.fleet.selectors.nodes import count_nodes_online
from farm.rules.wording import numbers

if TYPE_CHECKING:
    from farm.accounts.models import User

MAX_BACKUP_AGE = timedelta(days=7)


@dataclass(frozen=True)
class Step:
    """A step. `words`: its state in a sentence; `command`, `page` and `document`: how to do it. `page`: the name of a
    page in urls.py and the label of its button; `anchor`: a heading of the document; `state`: `done` or `to do`."""

    title: str
    is_done: bool
    words: str
    command: str = ""
    page: tuple[str, str] = ("", "")
    document: str = ""
    anchor: str = ""

    @property
    def state(self) -> str:
        return "done" if self.is_done else "to do"


def list_steps(user: "User") -> list[Step]:
    return [_check_address(), _check_mail(), _check_backup(), _check_sign_in(), _check_nodes(user)]


def write_headline(steps: Sequence[Step]) -> str:
    done = sum(step.is_done for step in steps)
    return f"{done} of {len(steps)} steps of setting up are done" if done < len(steps) else "This farm is set up"


def write_home_option() -> str:
    """Write the option `--home FOLDER` with this farm's folder, quoted for a shell. Commands without it would use the
    folder `var` in the current directory."""
    return f"--home {shlex.quote(str(settings.HOME))}"


def _check_address() -> Step:
    url = str(settings.PUBLIC_URL)
    is_done = url.startswith("https://")
    words = f"People come by {url}." if is_done else f"{url} is not encrypted: only this machine should use it."
    command = f"onnxfarm serve {write_home_option()} --tls-cert farm.pem --tls-key farm.key"
    return Step("Address and TLS", is_done, words, command=command, document="operations")


def _check_mail() -> Step:
    is_done = bool(settings.HAS_MAIL)
    words = (
        f"Mail goes out through {settings.EMAIL_HOST}."
        if is_done
        else "No mail server is named: alerts go to webhooks and chats alone."
    )
    named = "ONNXFARM_MAIL_URL=smtp+tls://USER:PASSWORD@HOST ONNXFARM_MAIL_FROM=farm@example.org"
    command = f"{named} onnxfarm serve {write_home_option()}"
    page = ("dashboard:channels", "Add a channel")
    return Step("Mail", is_done, words, command=command, page=page, document="watch", anchor="notify-a-channel")


def _check_backup() -> Step:
    last = last_backup()
    is_done = last is not None and timezone.now() - last.at < MAX_BACKUP_AGE
    words = "No backup was made yet." if last is None else f"The last backup is of {last.at:%Y-%m-%d %H:%M} UTC."
    return Step(
        "Backup",
        is_done,
        words,
        command=f"onnxfarm farm backup farm.backup {write_home_option()}",
        page=("dashboard:backup", "Backup"),
        document="operations",
    )


def _check_sign_in() -> Step:
    provider, people = settings.OPENID, count_people_who_signed_in()
    page = ("dashboard:openid", "OpenID groups")
    if provider is not None:
        words = provider.problem or f"People sign in through {provider.name}."
        return Step("Sign-in", not provider.problem, words, page=page, document="signing-in")
    counted = numbers.counted(people, "person", "people")
    words = f"{counted} signed in by one-time links." if people > 1 else "Nobody but you has signed in."
    command = "onnxfarm farm users invite NAME --team TEAM"
    return Step("Sign-in", people > 1, words, command=command, page=page, document="signing-in")


def _check_nodes(user: "User") -> Step:
    online, nodes = count_nodes_online(user)
    words = f"{numbers.counted(nodes, 'node')} joined, {online} online now." if nodes else "No node has joined yet."
    return Step("First node", nodes > 0, words, page=("dashboard:fleet", "Add a node"), document="nodes")
