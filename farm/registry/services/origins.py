"""The origin of a version: a branch and a commit, as the gate that uploads it says."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django.db.models import Q

from farm.base.refusals import Invalid

MAX_BRANCH: Final = 255
_COMMIT: Final = re.compile(r"[0-9a-f]{7,64}")


@dataclass(frozen=True, slots=True)
class Origin:
    """The branch (empty for the model's main line) and the commit (empty where it is not known) of an upload.

    `is_gate` says that the upload came with a token that may only run gates. The constructor raises Invalid for a text
    that cannot be a branch or a commit, and for a gate without a branch.
    """

    branch: str = ""
    commit: str = ""
    is_gate: bool = False

    def __post_init__(self) -> None:
        if len(self.branch) > MAX_BRANCH or not self.branch.isprintable():
            raise Invalid(f"A branch has at most {MAX_BRANCH} printable characters.", code="bad_branch")
        if self.commit and _COMMIT.fullmatch(self.commit) is None:
            raise Invalid(
                f"“{self.commit[:70]}” is no commit: those have 7 to 64 digits from 0 to f.", code="bad_commit"
            )
        if self.is_gate and not self.branch.strip():
            raise Invalid(
                "A token that may only gate uploads what a branch has: say which.",
                code="no_branch",
                hint="Give `onnxfarm gate` --branch.",
            )

    def make_version_filter(self, digests: Mapping[str, str]) -> Q:
        """Make the filter for existing versions that may stand for an upload with this origin and the same content.

        The content itself is not filtered; `digests` holds its digests by column. An upload to the main line matches
        only versions of the main line, so that a merged model becomes the newest version there. An upload of a branch
        matches versions of any branch; without reference data it also matches versions of the main line that were not
        deleted.
        """
        if not self.branch:
            return Q(branch="")
        with_data = digests["artifact__data_sha256"] != ""
        return ~Q(branch="") if with_data else ~Q(branch="") | Q(removed_at=None)


OWN_LINE: Final = Origin()
