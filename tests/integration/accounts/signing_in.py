"""A browser that comes by the farm's identity provider, and what it is told."""

import re
from html import unescape
from urllib.parse import urlencode

from django.test import Client

from farm.accounts.models import User
from tests.integration.accounts.issuer import Issuer
from tests.responses import Response


def sent_to(browser: Client, **form: str) -> str:
    """Where the sign-in button leads."""
    page = press(browser, **form)
    assert page.status_code == 200, said(page)
    [address] = re.findall(r'http-equiv="refresh" content="0; url=([^"]+)"', page.content.decode())
    return unescape(address)


def press(browser: Client, **form: str) -> Response:
    """The sign-in page's button, as a browser sends a form without files."""
    return browser.post("/sign-in/openid/", urlencode(form), content_type="application/x-www-form-urlencoded")


def sign_in(browser: Client, issuer: Issuer, **form: str) -> Response:
    """The button, the provider, and the way back."""
    return browser.get(issuer.code(sent_to(browser, **form)))


def said(answer: Response) -> str:
    """A refusal's sentence and hint."""
    text = answer.content.decode()
    [heading] = re.findall(r"<h1>(.*?)</h1>", text, re.DOTALL)
    return unescape(heading)


def who(browser: Client) -> str | None:
    """The user of the browser's session."""
    key = browser.session.get("_auth_user_id")
    return User.objects.get(pk=key).username if key else None
