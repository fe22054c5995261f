"""Sends mail through the server in the farm's settings. `Message-ID` is the same at every try."""

import smtplib

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.mail import EmailMessage
from django.core.mail.utils import DNS_NAME
from django.core.validators import validate_email

from farm.alerts.channels.channel_kind import ChannelKind, DeliveryProblem, Message
from farm.base.refusals import Invalid


def check(address: str) -> None:
    """Check a mail address. Raises Invalid where it is malformed, or where this farm is not set up to send mail."""
    if not settings.HAS_MAIL:
        raise Invalid(
            "This farm is not set up to send mail.", code="no_mail", hint="Set ONNXFARM_MAIL_URL, see docs/watch.md."
        )
    try:
        validate_email(address)
    except ValidationError:
        raise Invalid(f"“{address[:100]}” is not an email address.", code="bad_target") from None


def send(message: Message, address: str) -> None:
    """Send one mail.

    Raises DeliveryProblem, which is permanent where the server refuses the address with a 5xx status.
    """
    headers = {"Message-ID": f"<{message.id}@{DNS_NAME}>", "Auto-Submitted": "auto-generated"}
    mail = EmailMessage(subject=" ".join(message.subject.split()), body=message.text, to=[address], headers=headers)
    try:
        mail.send(fail_silently=False)
    except smtplib.SMTPRecipientsRefused as problem:
        codes = [code for code, _ in problem.recipients.values()]
        is_permanent = all(500 <= code < 600 for code in codes)
        raise DeliveryProblem(f"The mail server refuses {address} ({codes[0]}).", is_permanent=is_permanent) from None
    except smtplib.SMTPAuthenticationError:
        raise DeliveryProblem("The mail server rejected the farm's user name and password.") from None
    except (smtplib.SMTPException, OSError) as problem:
        raise DeliveryProblem(f"The mail server rejected the message: {type(problem).__name__}.") from None


KIND = ChannelKind(name="mail", title="Mail", takes="a mail address", check=check, send=send, shown=str)
