"""The section of the documents that the *?* of each page opens."""

from dashboard import documents

# maps the words of an address without its numbers to a document and a heading in it; the longest match counts
PLACES = {
    "": (documents.FIRST, ""),
    "alerts": ("watch", "an-alert"),
    "models": ("uploads", "which-releases-load-it"),
    "models/upload": ("uploads", ""),
    "models/hardware": ("choosing", "where-should-it-run"),
    "models/versions/graph": ("comparing", "on-the-graph"),
    "variants": ("variants", ""),
    "runs": ("symptoms", ""),
    "runs/new": ("matrix", ""),
    "runs/cells": ("cells", "what-a-cell-says"),
    "watches": ("watch", ""),
    "trends": ("verdicts", "level-shifts"),
    "fleet": ("nodes", "control-it"),
    "fleet/invite": ("nodes", ""),
    "fleet/runtimes": ("nodes", "other-packages-plug-ins-and-indexes"),
    "releases": ("watch", "a-release"),
    "compare": ("comparing", "cells-and-runs-on-pages"),
    "settings": ("operations", "settings"),
    "settings/channels": ("watch", "notify-a-channel"),
    "settings/indexes": ("nodes", "other-packages-plug-ins-and-indexes"),
    "settings/tokens": ("operations", "people"),
    "settings/teams": ("operations", "people"),
    "settings/shares": ("sharing", ""),
    "settings/openid": ("signing-in", "groups-teams-and-roles"),
    "settings/backup": ("operations", "backup-and-restore"),
    "settings/audit": ("security", "who-trusts-whom"),
}


def place_of(path: str) -> str:
    """Return the address of the document that explains the page at this path; the index of documents where none
    does."""
    words = [word for word in path.split("/") if word and not word.isdigit()]
    beginnings = ("/".join(words[:size]) for size in range(len(words), -1, -1))
    name, anchor = next(PLACES[beginning] for beginning in beginnings if beginning in PLACES)
    return documents.address(name, anchor)
