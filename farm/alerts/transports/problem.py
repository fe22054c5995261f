"""Why a message did not arrive."""


class DeliveryProblem(Exception):
    """One sentence for people. `is_permanent`: trying again would change nothing."""

    def __init__(self, text: str, *, is_permanent: bool = False) -> None:
        super().__init__(text)
        self.is_permanent = is_permanent
