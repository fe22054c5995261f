"""What happened to alerts and releases since a moment: for whoever comes back."""

from datetime import datetime

from django.db.models import Count, Max, QuerySet

from farm.accounts.selectors import Anyone
from farm.alerts.models import Alert, AlertEvent, Release
from farm.alerts.states import AlertEventKind

# what somebody who was away wants to hear of
TURNS = (
    AlertEventKind.OPENED,
    AlertEventKind.REOPENED,
    AlertEventKind.EXPLAINED,
    AlertEventKind.RESOLVED,
    AlertEventKind.INVALID,
    AlertEventKind.INFRA,
    AlertEventKind.WOKEN,
)


def turns_since(user: Anyone, moment: datetime) -> QuerySet[AlertEvent]:
    """Lines of the logs of the user's alerts that changed what stands there, newest first."""
    rows = AlertEvent.objects.filter(alert__in=Alert.objects.visible_to(user), kind__in=TURNS, at__gte=moment)
    return rows.select_related("alert").order_by("-pk")


def releases_since(moment: datetime) -> list[tuple[str, int, str, datetime]]:
    """Distributions with releases that appeared: name, how many, one of them, and when the last came."""
    rows = Release.objects.filter(seen_at__gte=moment, is_gone=False).values("distribution").order_by("distribution")
    found = rows.annotate(count=Count("pk"), last=Max("seen_at"), version=Max("version"))
    return [(row["distribution"], row["count"], row["version"], row["last"]) for row in found]
