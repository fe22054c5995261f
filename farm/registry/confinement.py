"""Whether uploads are read on this machine, in a sandbox or without one, and the warnings where no sandbox works."""

import logging
from dataclasses import dataclass

from django.conf import settings

from farm.sandbox import confinement, unconfined
from farm.sandbox.policy import Level

log = logging.getLogger(__name__)
OVERRIDE = "ONNXFARM_UNSANDBOXED=yes-i-own-every-model"


@dataclass(frozen=True, kw_only=True)
class Confinement:
    """The sandbox level of this process, and whether the operator accepts reading uploads without a sandbox.

    `reads_uploads` is True where a sandbox works or the operator accepts to do without.
    """

    level: Level
    is_accepted: bool

    @property
    def reads_uploads(self) -> bool:
        return self.level != "none" or self.is_accepted

    @property
    def sentence(self) -> str:
        """A warning to members, in one or two sentences; empty where a sandbox works."""
        if self.level != "none":
            return ""
        if self.is_accepted:
            return "No sandbox works on this farm's machine: an uploaded model could run code with the farm's rights."
        return "No sandbox works on this farm's machine, so uploads are not read. The farm's log says how to fix it."

    @property
    def advice(self) -> str:
        """A warning to the operator, with what they may do; empty where a sandbox works."""
        if self.level != "none":
            return ""
        problem = confinement.explain_missing_sandbox()
        if self.is_accepted:
            return f"{problem} Uploads are read all the same, because of {OVERRIDE}."
        return f"{problem} No upload is read until then. If every model here is yours: {OVERRIDE}."


def current_confinement() -> Confinement:
    return Confinement(level=confinement.find_available_level(), is_accepted=settings.UNSANDBOXED)


def apply_operator_choice() -> None:
    """Allow or refuse work without a sandbox for the rest of this process, as the setting UNSANDBOXED says."""
    if settings.UNSANDBOXED:
        unconfined.accept_unconfined(lambda _: log.warning("%s", current_confinement().advice))
    else:
        unconfined.refuse_unconfined()
