"""States of a node. docs/reference/states.md lists them."""

from django.db import models


class NodeState(models.TextChoices):
    """Whether it talks to the farm: offline → online at a hello, online → offline when it leaves or falls silent."""

    ONLINE = "online"  # it has said hello and is heard
    OFFLINE = "offline"  # it left or fell silent


class NodeHealth(models.TextChoices):
    """Whether it may work, apart from whether it is there.

    pending → active ⇄ draining; active → quarantined → active; anything → retired, which is final.
    """

    PENDING = "pending"  # enrolled; gets no secret until an admin of the team approves its fingerprint
    ACTIVE = "active"  # may work
    DRAINING = "draining"  # takes no further block
    # three blocks in a row failed by the node's own fault, or its owner may not run in its team any more
    QUARANTINED = "quarantined"
    RETIRED = "retired"  # final: its secrets open nothing, and its block is queued again


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

    ASKED = "asked"  # the node's owner or an admin of its team offers it
    AGREED = "agreed"  # the receiving team's blocks and files come to it, while whoever offered it belongs to the team
    DECLINED = "declined"  # an admin of the receiving team said no, or the offer stands no more


class Trials(models.TextChoices):
    """Whether a node tries providers that others ask for: once its owner was asked, at once, or never."""

    ASK = "ask"
    ALLOW = "allow"
    NEVER = "never"


class TrialState(models.TextChoices):
    """asked → pending | declined; pending → ready | failed | declined. A new trial is a new row."""

    ASKED = "asked"  # of the node's owner
    DECLINED = "declined"  # by the owner
    PENDING = "pending"  # the node tries the provider
    READY = "ready"  # a trace shows the provider executing
    FAILED = "failed"  # it does not, and says why


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
