"""States of a node. docs/states.md draws the arrows."""

from django.db import models


class NodeState(models.TextChoices):
    """Whether it talks to the farm: offline → online at a hello, online → offline when it leaves or falls silent."""

    ONLINE = "online"
    OFFLINE = "offline"


class NodeHealth(models.TextChoices):
    """Whether it may work, apart from whether it is there.

    pending → active ⇄ draining; active → quarantined → active; anything → retired, which is final.
    """

    PENDING = "pending"
    ACTIVE = "active"
    DRAINING = "draining"
    QUARANTINED = "quarantined"
    RETIRED = "retired"


class NodeEventKind(models.TextChoices):
    """What a node's log tells."""

    ENROLLED = "enrolled"
    APPROVED = "approved"
    ONLINE = "online"
    OFFLINE = "offline"
    DRAINING = "draining"
    RESUMED = "resumed"
    QUARANTINED = "quarantined"
    RETIRED = "retired"
    SECRET_ISSUED = "secret_issued"
    SETTINGS_CHANGED = "settings_changed"
    REFUSED = "refused"
    LENDING = "lending"
    RENAMED = "renamed"
    RUNTIMES = "runtimes"
    TRIAL = "trial"


class LendingState(models.TextChoices):
    """asked → agreed ⇄ declined; taken back by the node's side, it is gone."""

    ASKED = "asked"
    AGREED = "agreed"
    DECLINED = "declined"


class Trials(models.TextChoices):
    """Whether a node tries providers that others ask for: once its owner was asked, at once, or never."""

    ASK = "ask"
    ALLOW = "allow"
    NEVER = "never"


class TrialState(models.TextChoices):
    """asked → pending | declined; pending → ready | failed | declined. A new trial is a new row."""

    ASKED = "asked"
    DECLINED = "declined"
    PENDING = "pending"
    READY = "ready"
    FAILED = "failed"


# from which healths a node may go to each health
HEALTH_ARROWS: dict[NodeHealth, tuple[NodeHealth, ...]] = {
    NodeHealth.ACTIVE: (NodeHealth.PENDING, NodeHealth.DRAINING, NodeHealth.QUARANTINED),
    NodeHealth.DRAINING: (NodeHealth.ACTIVE,),
    NodeHealth.QUARANTINED: (NodeHealth.ACTIVE, NodeHealth.DRAINING),
    NodeHealth.RETIRED: (NodeHealth.PENDING, NodeHealth.ACTIVE, NodeHealth.DRAINING, NodeHealth.QUARANTINED),
}

# from which states a lending may go to each state
LENDING_ARROWS: dict[LendingState, tuple[LendingState, ...]] = {
    LendingState.AGREED: (LendingState.ASKED, LendingState.DECLINED),
    LendingState.DECLINED: (LendingState.ASKED, LendingState.AGREED),
}
