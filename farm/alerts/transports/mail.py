"""Mail, through the server that the farm is set up with. `Message-ID` is the same at every try."""

import smtplib

from django.core.mail import EmailMessage
from django.core.mail.utils import DNS_NAME

from farm.alerts.transports.problem import DeliveryProblem


def send(address: str, *, subject: str, text: str, message_id: str) -> None:
    """Sends one mail. Raises DeliveryProblem: permanent when the server knows no such address."""
    headers = {"Message-ID": f"<{message_id}@{DNS_NAME}>", "Auto-Submitted": "auto-generated"}
    mail = EmailMessage(subject=" ".join(subject.split()), body=text, to=[address], headers=headers)
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
