"""A search for the settings to ship on a farm: asked, followed, and cancelled by Ctrl-C with the best so far."""

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


def find_settings(bundle: Bundle, order: Mapping[str, object], *, server: str | None, console: Console) -> FindOut:
    """Upload the model, start a search, show how far it is, and return it once each of its races has ended.

    Ctrl-C cancels it on the farm, and returns it with the best so far.
    """
    with Client(find_account(server)) as client:
        version = upload_and_inspect(client, bundle, console=console)
        asked = client.call(operations.FIND, json={"version": version.id, **order})
        print_lines(f"Search {asked.id}: {asked.url}", console=console)
        try:
            return _follow(client, asked, console=console)
        except KeyboardInterrupt:
            return client.call(operations.CANCEL_FIND, find=asked.id)


def _follow(client: Client, asked: FindOut, *, console: Console) -> FindOut:
    shown: dict[str, str] = {}
    while asked.is_open:
        for race in asked.races:
            words = ": ".join(filter(None, (race.hardware, race.doing, race.sentence)))
            if race.doing and shown.get(race.hardware) != words:
                shown[race.hardware] = words
                print_lines(words, console=console)
        time.sleep(POLL_S)
        asked = client.call(operations.FOUND, find=asked.id)
    return asked


def parse_answers(search: FindOut) -> dict[str, Found]:
    """Parse the answer of each race, by its hardware, with the sentence of the race, which says why a race failed.
    Raises Infrastructure where a race has no answer."""
    answers: dict[str, Found] = {}
    for race in search.races:
        if race.answer is None:
            raise Infrastructure(f"{race.sentence or 'The farm gave no answer.'} {search.url}")
        answers[race.hardware] = Found.model_validate({**race.answer, "sentence": race.sentence})
    return answers
