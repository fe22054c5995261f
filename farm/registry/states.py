"""States of what the registry keeps. docs/states.md draws the arrows."""

from django.db import models


class VersionState(models.TextChoices):
    """pending → inspecting → ready | rejected; inspecting → pending when the worker was lost."""

    PENDING = "pending"
    INSPECTING = "inspecting"
    READY = "ready"
    REJECTED = "rejected"


class MakingState(models.TextChoices):
    """Of variants and preparations: pending → making → ready | failed; making → pending when the worker was lost."""

    PENDING = "pending"
    MAKING = "making"
    READY = "ready"
    FAILED = "failed"


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
