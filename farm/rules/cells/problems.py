"""What is wrong with a value that somebody wrote."""


class MatrixProblem(ValueError):
    """A matrix that cannot be used. The message is one sentence: which key or value, and the way out."""
