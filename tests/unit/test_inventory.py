"""What others count on by name changes with its line in tests/inventory.txt alone."""

import difflib

from tests.inventory import PATH, inventory


def test_the_interface_is_what_the_inventory_lists() -> None:
    recorded, found = PATH.read_text().splitlines(), inventory().splitlines()
    diff = "\n".join(difflib.unified_diff(recorded, found, "recorded", "found", lineterm="", n=0))
    assert not diff, f"if that is meant, `python -m tests.inventory` writes it anew:\n{diff}"
