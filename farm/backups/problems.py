"""Why a farm is not backed up or restored, in one sentence."""


class BackupError(Exception):
    """The sentence says what happened, with which values, and what to do next."""
