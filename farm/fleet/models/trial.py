"""Providers that nodes try because somebody asked for them."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from farm.contract.reasons import Reason, ReasonCode
from farm.fleet.states import TrialState
from farm.rules.runtimes import providers

OPEN_TRIALS = (TrialState.ASKED, TrialState.PENDING)


class Trial(models.Model):
    """A provider, by ONNX Runtime's name, which somebody wants tried on a node that had not proven it.

    `title` is the provider's name for people. Whether the owner has allowed the trial is in its state.
    """

    node = models.ForeignKey("fleet.Node", models.CASCADE, related_name="trials")
    provider = models.CharField(max_length=64)
    state = models.CharField(max_length=8, choices=TrialState.choices, default=TrialState.ASKED)
    asked_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    asked_at = models.DateTimeField(default=timezone.now, editable=False)
    answered_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    # when the trial was allowed, when the node was asked to begin it, and when it ended
    allowed_at = models.DateTimeField(null=True, blank=True)
    begun_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    problem = models.CharField(max_length=1000, blank=True, default="")

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["node", "provider"], condition=Q(state__in=OPEN_TRIALS), name="one_open_trial_per_provider"
            )
        ]
        indexes = [models.Index(fields=["state"], name="fleet_trial_state")]

    def __str__(self) -> str:
        return f"{self.title} on {self.node}"

    @property
    def title(self) -> str:
        return providers.title(self.provider)

    @property
    def words(self) -> str:
        """The state of the trial in one sentence."""
        action, answerer = f"{self.node.name} tries {self.title}", self.answered_by or "A former user"
        match self.state:
            case TrialState.ASKED:
                return f"{self.asked_by or 'A former user'} asks that {action}; its owner has to allow it."
            case TrialState.DECLINED:
                return f"{answerer} declined that {action}."
            case TrialState.PENDING if self.begun_at is None:
                return f"{action} as soon as it is there and has nothing to measure."
            case TrialState.PENDING:
                return f"{self.node.name} is installing {self.title} to try it, about a minute."
            case TrialState.READY:
                return f"{self.node.name} tried {self.title}, which runs there."
            case _:
                return f"{self.node.name} tried {self.title}, which does not run there: {self.problem}"

    @property
    def reason(self) -> Reason | None:
        """Why blocks that waited for the trial are refused; None unless it failed or was declined."""
        if self.state not in (TrialState.FAILED, TrialState.DECLINED):
            return None
        return Reason(code=ReasonCode.NO_NODE, text=self.words)

    def move(self, state: TrialState, *before: TrialState, **changes: object) -> bool:
        """Change the state and these columns; return False, with nothing changed, unless it is in a state `before`."""
        if not Trial.objects.filter(pk=self.pk, state__in=before).update(state=state, **changes):
            return False
        for name, value in {"state": state, **changes}.items():
            setattr(self, name, value)
        return True
