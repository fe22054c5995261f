"""The largest numbers that rows hold, for every message and address with the number of a row.

SQLite's integers have 64 bits, PostgreSQL's columns have 64, 32 or 16, and Python parses no integer of more than 4,300
digits. `is_row_number` accepts up to MAX_DIGITS ASCII digits, without a sign.
"""

from typing import Annotated, Final

from pydantic import Field

MAX_ROW_NUMBER: Final = 2**63 - 1
# a number of at most this many digits fits into the 64 bits of a database
MAX_DIGITS: Final = 18

# the number of a row
RowNumber = Annotated[int, Field(ge=0, le=MAX_ROW_NUMBER)]
# how often a block was queued: 32 bits
AttemptNumber = Annotated[int, Field(ge=1, le=2**31 - 1)]
# the version of the contract: 16 bits
ContractVersion = Annotated[int, Field(ge=1, le=2**15 - 1)]
# Unix seconds up to the year 9999
UnixSeconds = Annotated[int, Field(ge=0, le=253_402_300_799)]


def is_row_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS
