"""Stands in for scipy.special, which is imported when one of its functions is first used.

scipy.special takes 27 MB of memory, and a web process that only receives uploads does not need it.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scipy.special import bdtr, betaincinv, ndtr, ndtri, stdtr, stdtrit

    __all__ = ["bdtr", "betaincinv", "ndtr", "ndtri", "stdtr", "stdtrit"]
else:

    def __getattr__(name: str) -> object:
        from scipy import special

        return getattr(special, name)
