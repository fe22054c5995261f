"""The client's side of the registry: models and versions that are renamed, labelled, deleted, restored; the search."""

from collections.abc import Sequence

from onnxfarm.problems import Usage
from onnxfarm.remote import rows
from onnxfarm.remote.client import Client


class RegistryClient(Client):
    """A connection to one farm, for those who keep its models in order."""

    def search(self, words: str) -> list[rows.Hit]:
        """What of the farm fits: models, versions by digest, runs, nodes, alerts and watches."""
        return self._list(rows.Hit, "/search", params={"q": words})

    def model_named(self, wanted: str, *, is_removed: bool = False) -> rows.Model:
        """The model of that number or name. `is_removed`: among those that were deleted. Raises Usage."""
        if wanted.isdecimal():
            found = [self._json(rows.Model, "GET", f"/models/{wanted}")]
        else:
            params = {"limit": 100, "removed": "true" if is_removed else "false", "search": wanted[:100]}
            found = self._list(rows.Model, "/models", params=params)
        fitting = [one for one in found if wanted in (one["name"], str(one["id"]))]
        if len(fitting) == 1:
            return fitting[0]
        if not fitting:
            which = "deleted model" if is_removed else "model"
            raise Usage(f"There is no {which} “{wanted}” that you can access: `onnxfarm models` lists them.")
        known = ", ".join(f"{one['id']} of team {one['team']}" for one in fitting)
        raise Usage(f"{len(fitting)} models are called {wanted}: give a number, {known}.")

    def version_numbered(self, model_id: int, number: int) -> rows.Version:
        """One version of a model, also a deleted one. Raises Usage."""
        page = self._json(rows.ModelPage, "GET", f"/models/{model_id}")
        versions = [*page["versions"], *page["removed_versions"]]
        fitting = [one for one in versions if one["number"] == number]
        if not fitting:
            known = ", ".join(str(one["number"]) for one in versions) or "none"
            raise Usage(f"{page['name']} has no version {number}; its versions: {known}.")
        return fitting[0]

    def rename_model(self, model_id: int, name: str) -> rows.Model:
        return self._json(rows.Model, "PATCH", f"/models/{model_id}", json={"name": name})

    def describe_model(self, model_id: int, description: str) -> rows.Model:
        return self._json(rows.Model, "PATCH", f"/models/{model_id}", json={"description": description})

    def label_model(self, model_id: int, labels: Sequence[str]) -> rows.Model:
        """Replaces a model's labels."""
        return self._json(rows.Model, "PATCH", f"/models/{model_id}", json={"labels": list(labels)})

    def note_version(self, version_id: int, note: str) -> rows.Version:
        return self._json(rows.Version, "PATCH", f"/versions/{version_id}", json={"note": note})

    def delete_model(self, model_id: int) -> rows.Removed:
        return self._json(rows.Removed, "DELETE", f"/models/{model_id}", is_repeatable=False)

    def delete_version(self, version_id: int) -> rows.Removed:
        return self._json(rows.Removed, "DELETE", f"/versions/{version_id}", is_repeatable=False)

    def restore_model(self, model_id: int) -> rows.Model:
        return self._json(rows.Model, "POST", f"/models/{model_id}/restore", json={})

    def restore_version(self, version_id: int) -> rows.Version:
        return self._json(rows.Version, "POST", f"/versions/{version_id}/restore", json={})
