"""States of what the registry keeps. docs/reference/states.md lists them."""

from django.db import models


class VersionState(models.TextChoices):
    """pending → inspecting → ready | rejected; inspecting → pending when the worker was lost."""

    PENDING = "pending"  # uploaded
    INSPECTING = "inspecting"  # a sandboxed look at it
    READY = "ready"  # may be measured
    REJECTED = "rejected"  # cannot be parsed, and says why


class MakingState(models.TextChoices):
    """Of variants and preparations: pending → making → ready | failed; making → pending when the worker was lost."""

    PENDING = "pending"  # asked for
    MAKING = "making"  # in a sandboxed child
    READY = "ready"  # made, and loaded once
    FAILED = "failed"  # cannot be made, and says why


class FileRole(models.TextChoices):
    """What a file is in its artifact. `model` and `data` make the bundle; the others are reference data."""

    MODEL = "model"
    DATA = "data"
    INPUTS = "inputs"
    EXPECTED = "expected"
    PROMPTS = "prompts"
    CALIBRATION = "calibration"
    EVALUATION = "evaluation"


BUNDLE_ROLES = (FileRole.MODEL, FileRole.DATA)
