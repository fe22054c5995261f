"""The error for a matrix that cannot be used."""


class MatrixProblem(ValueError):
    """A matrix that cannot be used. The message is one sentence that names the key or value, and what to do."""
