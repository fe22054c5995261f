# acme_channels.py
import json

from farm.alerts.channels import webhook
from farm.alerts.channels.channel_kind import ChannelKind, Message


def send(message: Message, address: str) -> None:
    body = {"id": message.id, "summary": message.subject, "details": message.text}
    webhook.post(address, json.dumps(body).encode(), headers={"content-type": "application/json"})


PAGER = ChannelKind(
    name="acme-pager",
    title="Acme Pager",
    takes="the https:// address of a pager",
    check=webhook.check,
    shown=webhook.show_host,
    send=send,
)
