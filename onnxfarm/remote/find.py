"""Starts a search for the best settings on a farm, and follows it; Ctrl-C cancels it and keeps the best so far."""

import time
from collections.abc import Mapping

from rich.console import Console

from farm.contract.api.finds import FindOut
from farm.contract.document_find import Found
from onnxfarm.outputs import print_lines
from onnxfarm.problems import Infrastructure
from onnxfarm.remote import operations
from onnxfarm.remote.account import find_account
from onnxfarm.remote.client import Client
from onnxfarm.remote.uploads import Bundle, upload_and_inspect

POLL_S = 2.0


def find_settings(bundle: Bundle, options: Mapping[str, object], *, server: str | None, console: Console) -> FindOut:
    """Upload the model, start a search with `options`, show its progress, and return it when all its races have ended.

    Once the search has started, Ctrl-C cancels it on the farm, and it is returned with the best settings so far. Raises
    Usage, Infrastructure, and TimedOut if the model is not inspected in time.
    """
    with Client(find_account(server)) as client:
        version = upload_and_inspect(client, bundle, console=console)
        search = client.call(operations.START_FIND, json={"version": version.id, **options})
        print_lines(f"Search {search.id}: {search.url}", console=console)
        try:
            return _follow(client, search, console=console)
        except KeyboardInterrupt:
            return client.call(operations.CANCEL_FIND, find=search.id)


def _follow(client: Client, search: FindOut, *, console: Console) -> FindOut:
    """Print a line whenever the state of a race changes. Return the search when all races have ended."""
    printed: dict[str, str] = {}
    while search.is_open:
        for race in search.races:
            line = ": ".join(filter(None, (race.hardware, race.doing, race.sentence)))
            if race.doing and printed.get(race.hardware) != line:
                printed[race.hardware] = line
                print_lines(line, console=console)
        time.sleep(POLL_S)
        search = client.call(operations.FIND, find=search.id)
    return search


def parse_answers(search: FindOut) -> dict[str, Found]:
    """Return the answer of each race as a document, by the race's hardware.

    The document's `sentence` is that of the race. Raises Infrastructure if a race has no answer, with the reason, and
    pydantic's ValidationError if an answer is no such document.
    """
    answers: dict[str, Found] = {}
    for race in search.races:
        if race.answer is None:
            raise Infrastructure(f"{race.sentence or 'The farm gave no answer.'} {search.url}")
        answers[race.hardware] = Found.model_validate({**race.answer, "sentence": race.sentence})
    return answers
