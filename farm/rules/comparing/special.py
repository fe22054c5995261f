"""scipy.special, imported when a function of it is first asked for.

It takes 27 MB, and a web process that only takes uploads judges nothing.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scipy.special import bdtr, betaincinv, ndtr, ndtri, stdtr, stdtrit

    __all__ = ["bdtr", "betaincinv", "ndtr", "ndtri", "stdtr", "stdtrit"]
else:

    def __getattr__(name: str) -> object:
        from scipy import special

        return getattr(special, name)
