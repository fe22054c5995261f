"""Base of what the API answers. Servers write it, clients of other releases read it: unknown keys mean nothing to them.

A field that answers did not have from the beginning has a `default_factory`, which a client of a farm of before reads.
"""

from pydantic import BaseModel, ConfigDict


class Answer(BaseModel):
    """A value of an answer's JSON."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)
