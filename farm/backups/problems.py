"""The error of a backup or restore."""


class BackupError(Exception):
    """A farm cannot be backed up or restored. The message says what happened and what to do next."""
