"""Completes ninja's OpenAPI document: descriptions of names in addresses, and of answers without a schema.

The functions `describe_…` make values for an operation's `openapi_extra`.
"""

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest
from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema
from ninja.parser import Parser

from farm.base.refusals import Invalid
from farm.contract.texts import describe_unstorable

# descriptions of the parameters in addresses, by name
NAMES: Mapping[str, str] = {
    "alert_id": "the alert's number",
    "cell": "the cell, as the run names it: c5",
    "channel_id": "the channel's number",
    "days": "how many days back, 1 to 366",
    "distribution": "the package of the runtime: onnxruntime",
    "divergence_id": "the question's number",
    "find_id": "the search's number",
    "investigation_id": "the investigation's number",
    "key": "the last part of the upload's or badge's address",
    "invitation_id": "the invitation's number",
    "lending_id": "the lending's number",
    "trial_id": "the trial's number",
    "model_id": "the model's number",
    "name": "the file's name in its bundle",
    "node_id": "the node's number",
    "plan_id": "the number of the plan that was asked for",
    "run_id": "the run's number",
    "share_id": "the link's number",
    "team_id": "the team's number",
    "token_id": "the token's number",
    "trace_id": "the trace's number, as a cell of the results names it",
    "username": "the person's name on this farm",
    "variant_id": "the variant's number",
    "version": "the release: 1.32.0",
    "version_id": "the version's number on the farm",
    "watch_id": "the watch's number",
    "what": "what is to be done, one of the words of this address's description",
}


def describe_file(media_type: str, text: str, **schema: object) -> dict[str, Any]:
    answer = {"description": text, "content": {media_type: {"schema": {"type": "string", "format": "binary"} | schema}}}
    return {"responses": {200: answer}}


def describe_empty_answer(text: str, *, status: int = 200) -> dict[str, Any]:
    nothing = {"*/*": {"schema": {"type": "string", "maxLength": 0}}}
    return {"responses": {status: {"description": text, "content": nothing}}}


class TextParser(Parser):
    """Parses bodies as JSON, and refuses characters that no database stores in any field."""

    def parse_body(self, request: HttpRequest) -> dict[str, Any]:
        """Parse the body. Raises ValueError where it is not JSON, Invalid for a NUL or half of a surrogate pair."""
        body = super().parse_body(request)
        sign = describe_unstorable(body)
        if sign is not None:
            raise Invalid(f"The request holds {sign}: leave it out.", code="not_text")
        return body


class DescribedAPI(NinjaAPI):
    """An API whose OpenAPI document describes every name in an address."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._described: dict[str, OpenAPISchema] = {}

    def get_openapi_schema(self, **options: Any) -> OpenAPISchema:
        """Return the OpenAPI document with the descriptions of NAMES.

        The document is cached for the same options, so callers must not change it. Raises KeyError for a parameter that
        has no description and is not in NAMES.
        """
        key = repr(sorted(options.items()))
        if key not in self._described:
            self._described[key] = self._describe(**options)
        return self._described[key]

    def _describe(self, **options: Any) -> OpenAPISchema:
        document = super().get_openapi_schema(**options)
        for operation in (operation for methods in document["paths"].values() for operation in methods.values()):
            answers = operation["responses"]
            # remove the answer that ninja adds where another one was described
            if len(answers) > 1 and "content" not in answers.get(200, {"content": {}}):
                del answers[200]
            for parameter in operation.get("parameters", ()):
                if "description" not in parameter and "description" not in parameter["schema"]:
                    parameter["description"] = NAMES[parameter["name"]]
        return document
