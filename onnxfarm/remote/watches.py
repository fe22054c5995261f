"""The client's side of watches and alerts.

with WatchClient(find_account()) as farm:
    farm.call_watch(3, candidate="1.31.1")
"""

from collections.abc import Collection, Mapping

from onnxfarm.problems import Infrastructure, Usage
from onnxfarm.remote import rows
from onnxfarm.remote.client import Client, Row

PAGE = 100
# as many as the farm lets be skipped
MOST_ROUNDS = 1_000_000


class WatchClient(Client):
    """A connection to one farm, for its watches, alerts and their reports."""

    def watches(self) -> list[rows.Watch]:
        """Every watch of the user's teams, by name."""
        return self._all(rows.Watch, "/watches")

    def watch_named(self, named: str) -> rows.Watch:
        """A watch by its number or its name. Raises Usage for none, and for several of one name."""
        if named.isdecimal():
            return self._json(rows.Watch, "GET", f"/watches/{named}")
        found = [one for one in self.watches() if one["name"] == named]
        if len(found) == 1:
            return found[0]
        if not found:
            raise Usage(f"There is no watch “{named}” that you can access: `onnxfarm watch list` shows yours.")
        raise Usage(f"{len(found)} watches are named “{named}”: give the number of one, as `onnxfarm watch list` does.")

    def create_watch(self, order: Mapping[str, object]) -> rows.Watch:
        return self._json(rows.Watch, "POST", "/watches", json=order, is_repeatable=False)

    def change_watch(self, watch_id: int, **changes: object) -> rows.Watch:
        """Change a watch; what is left out stays."""
        return self._json(rows.Watch, "PATCH", f"/watches/{watch_id}", json=changes)

    def remove_watch(self, watch_id: int) -> None:
        """Take a watch out, with its rounds and alerts."""
        self._request("DELETE", f"/watches/{watch_id}", is_repeatable=False)

    def call_watch(self, watch_id: int, **asked: str) -> list[rows.Round]:
        """Measure now; the rounds that were opened. Not repeated: each call is a measurement of its own."""
        return self._list(rows.Round, f"/watches/{watch_id}/call", method="POST", json=asked, is_repeatable=False)

    def rounds(self, watch_id: int, wanted: Collection[int]) -> list[rows.Round]:
        """These rounds of a watch, newest first. Raises Infrastructure when one of them is gone."""
        found: list[rows.Round] = []
        for skipped in range(0, MOST_ROUNDS, PAGE):
            page = self._list(rows.Round, f"/watches/{watch_id}/rounds", params={"after": skipped, "limit": PAGE})
            found += [one for one in page if one["id"] in wanted]
            if len(found) == len(wanted):
                return found
            if len(page) < PAGE:
                break
        gone = len(wanted) - len(found)
        raise Infrastructure(
            f"{gone} of {len(wanted)} rounds are gone: was the watch or a model deleted in the meantime?"
        )

    def alerts(self, *, which: str = "open") -> list[rows.Alert]:
        """Alerts of one list (open, snoozed, infra, resolved, invalid, all), newest first."""
        return self._all(rows.Alert, "/alerts", list=which)

    def alert(self, alert_id: int) -> rows.AlertPage:
        """One alert with its evidence and log."""
        return self._json(rows.AlertPage, "GET", f"/alerts/{alert_id}")

    def order(self, alert_id: int, what: str, **body: str) -> rows.AlertPage:
        """Do something with an alert: acknowledge, assign, snooze, invalid, infra, reopen, notes."""
        return self._json(rows.AlertPage, "POST", f"/alerts/{alert_id}/{what}", json=body, is_repeatable=False)

    def bisect(self, alert_id: int, *, good: str, bad: str) -> rows.Investigation:
        """Find the first bad release."""
        bounds = {"good": good, "bad": bad}
        return self._json(
            rows.Investigation, "POST", f"/alerts/{alert_id}/bisections", json=bounds, is_repeatable=False
        )

    def report(self, alert_id: int) -> bytes:
        """The bundle that repeats an alert's measurement, as a zip."""
        return self._request("GET", f"/alerts/{alert_id}/report.zip").content

    def issue(self, alert_id: int) -> str:
        """The text of an issue for the runtime's tracker, in Markdown."""
        return self._request("GET", f"/alerts/{alert_id}/issue.md").text

    def _all(self, kind: type[Row], path: str, **asked: str) -> list[Row]:
        found: list[Row] = []
        while True:
            page = self._list(kind, path, params={**asked, "after": len(found), "limit": PAGE})
            found += page
            if len(page) < PAGE:
                return found
