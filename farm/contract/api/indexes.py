"""Package indexes that a farm's admin added, as the API tells of them."""

from datetime import datetime

from pydantic import Field

from farm.contract.api.answer import Answer


class IndexOut(Answer):
    """Builds of it are runtimes whose version ends with `+at.NAME`."""

    name: str = Field(description="its name, which stands in the version of each of its builds")
    url: str = Field(description="the address of its simple pages")
    created_by: str | None = Field(description="who added it")
    created_at: datetime = Field(description="when it was added")
