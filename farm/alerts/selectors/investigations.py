"""What is looked into for alerts, as people find it."""

from farm.accounts.selectors import Anyone
from farm.alerts.models import Alert, Investigation
from farm.base.refusals import Missing


def investigation(user: Anyone, investigation_id: int) -> Investigation:
    """One of them. Raises Missing when there is none that the user may see."""
    rows = Investigation.objects.filter(alert__in=Alert.objects.visible_to(user))
    found = rows.filter(pk=investigation_id).first()
    if found is None:
        raise Missing(f"There is no bisection or work-around {investigation_id} that you can access.")
    return found
