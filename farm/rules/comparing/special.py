"""Stands in for scipy.special, which is imported when one of its functions is first used.

It takes 27 MB, and a web process that only receives uploads needs none of it.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scipy.special import bdtr, betaincinv, ndtr, ndtri, stdtr, stdtrit

    __all__ = ["bdtr", "betaincinv", "ndtr", "ndtri", "stdtr", "stdtrit"]
else:

    def __getattr__(name: str) -> object:
        from scipy import special

        return getattr(special, name)
