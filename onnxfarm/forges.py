"""Reads the job of a gate on GitHub Actions or GitLab CI, and publishes the gate's answer there.

The token is sent to the forge's own address only. Redirects are not followed.
"""

import json
import secrets
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from onnxfarm.gate_process import CANCELLED, FAILED, PASSED, TIMED_OUT

PER_PAGE = 100
TIMEOUT_S = 30
# the conclusion of a GitHub check by the gate's exit code
_CONCLUSIONS = {PASSED: "success", FAILED: "failure", TIMED_OUT: "timed_out", **dict.fromkeys(CANCELLED, "cancelled")}


class RefusedError(Exception):
    """A forge refused a request, or could not be reached. `status`: the HTTP status; 0 without an answer."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirects, because the token would be sent to the new address too."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


@dataclass(frozen=True)
class Api:
    """A client of a forge's JSON API. `headers` has the token."""

    url: str
    headers: Mapping[str, str]

    def request(self, method: str, path: str, content: object = None) -> Any:
        """Send a request with `content` as its JSON body, and return the parsed JSON of the response.

        Raises RefusedError, also for a redirect and for a response that is no JSON. The error's text has neither
        headers nor the body, so no token can get into the job's log.
        """
        body = None if content is None else json.dumps(content).encode()
        headers = {**self.headers, "Content-Type": "application/json", "User-Agent": "onnxfarm"}
        request = urllib.request.Request(f"{self.url}{path}", data=body, headers=headers, method=method)
        try:
            with urllib.request.build_opener(_NoRedirect).open(request, timeout=TIMEOUT_S) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as problem:
            raise RefusedError(problem.code, f"{method} {path} was answered {problem.code}") from None
        except (OSError, ValueError, HTTPException) as problem:
            raise RefusedError(0, f"{method} {path} was not answered ({type(problem).__name__})") from None

    def list_entries(self, path: str) -> Iterator[Mapping[str, Any]]:
        """Yield every entry of a list, in the forge's order. Raises RefusedError while it is iterated over."""
        for page in count(1):
            entries = self.request("GET", f"{path}?per_page={PER_PAGE}&page={page}")
            yield from entries
            if len(entries) < PER_PAGE:
                return


@dataclass(frozen=True)
class Answer:
    """The answer of a gate, to be published.

    `headline`: one line of plain text. `comment`: the same with details, in Markdown. `needs_comment` False: only an
    existing comment of the gate is updated, and no new one is written. `has_undecided`: the gate passed, but at least
    one comparison is undecided.
    """

    exit_code: int
    headline: str
    comment: str
    needs_comment: bool = True
    has_undecided: bool = False

    @property
    def verdict(self) -> str:
        """The verdict by the exit code: `passed`, `failed`, `cancelled`, or `not measured` for any other code."""
        if self.exit_code in CANCELLED:
            return "cancelled"
        return {PASSED: "passed", FAILED: "failed"}.get(self.exit_code, "not measured")


class Comment(NamedTuple):
    """A comment on a pull request or merge request. `path`: its address in the forge's API."""

    path: str
    body: str


class Forge(Protocol):
    """The forge on which the job of a gate runs.

    `base_commit`: the commit to compare with. `branch` and `commit`: what the job runs for. `pull_request_head`: the
    newest commit of the pull request's own branch. `comment_problem`: a sentence about why the job cannot write
    comments; empty if nothing is known to prevent it, but the forge may still refuse. The other four are empty if the
    job has no such commit or branch.
    """

    base_commit: str
    branch: str
    commit: str
    pull_request_head: str
    comment_problem: str

    def make_output_fences(self) -> tuple[str, str]:
        """Return a line to print before a program's output and one to print after it.

        Between these lines, the pipeline executes no commands that the output contains. Both are empty on GitLab.
        """

    def list_comments(self) -> Iterator[Comment]:
        """Yield the comments that the gate may have written: on GitHub those of bots, on GitLab of the token's user.

        Call this only if `comment_problem` is empty. Raises RefusedError while it is iterated over.
        """

    def write_comment(self, body: str, path: str) -> None:
        """Replace the text of the comment at `path`, or add a comment where `path` is empty. Raises RefusedError."""

    def publish_answer(self, answer: Answer, model: str) -> None:
        """Print the answer as a line; on GitHub also set the step's outputs and create a check. Raises RefusedError.

        `model`: the path of the model's file in the repository.
        """


class GitHub:
    """A job of GitHub Actions. Raises KeyError without GITHUB_EVENT_PATH or GITHUB_REPOSITORY in its environment."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        event = json.loads(Path(environment["GITHUB_EVENT_PATH"]).read_text())
        pull = event.get("pull_request") or {}
        base, head = pull.get("base") or {}, pull.get("head") or {}

        # what the job runs for
        self.base_commit = base.get("sha") or (event.get("merge_group") or {}).get("base_sha", "")
        self.pull_request_head = head.get("sha", "")
        self.commit = self.pull_request_head or environment.get("GITHUB_SHA", "")
        self.branch = head.get("ref") or environment.get("GITHUB_REF_NAME", "")

        # where the answer goes
        self._repository = f"/repos/{environment['GITHUB_REPOSITORY']}"
        self._issue = f"{self._repository}/issues/{int(pull['number'])}" if pull else ""
        self.comment_problem = "" if pull else "No comment was written: this job runs for no pull request."
        self._output = environment.get("GITHUB_OUTPUT")

        headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
        if token := environment.get("GATE_TOKEN"):
            headers["Authorization"] = f"Bearer {token}"
        self._api = Api(environment.get("GITHUB_API_URL", "https://api.github.com"), headers)

    def make_output_fences(self) -> tuple[str, str]:
        word = secrets.token_hex(16)
        return f"::stop-commands::{word}", f"::{word}::"

    def list_comments(self) -> Iterator[Comment]:
        for comment in self._api.list_entries(f"{self._issue}/comments"):
            # a person may have copied the mark, and could change the comment later
            if (comment.get("user") or {}).get("type") == "Bot":
                path = f"{self._repository}/issues/comments/{comment['id']}"
                yield Comment(path, comment.get("body") or "")

    def write_comment(self, body: str, path: str) -> None:
        self._api.request("PATCH" if path else "POST", path or f"{self._issue}/comments", {"body": body})

    def publish_answer(self, answer: Answer, model: str) -> None:
        """Set the step's outputs, print an annotation at the model's file, and create a check. Raises RefusedError.

        The annotation is a notice for `passed` and `cancelled`, a warning if a comparison is undecided, and else an
        error. No outputs are set without GITHUB_OUTPUT.
        """
        if self._output:
            with Path(self._output).open("a") as file:
                file.write(f"verdict={answer.verdict}\nexit-code={answer.exit_code}\n")

        level = "notice"
        if answer.verdict not in ("passed", "cancelled"):
            level = "error"
        elif answer.has_undecided:
            level = "warning"
        location = f"file={_escape_command_text(model, in_property=True)},line=1,title=onnxfarm gate"
        print(f"::{level} {location}::{_escape_command_text(answer.headline)}", flush=True)

        check = {
            "name": f"onnxfarm gate: {model}"[:100],
            "head_sha": self.commit,
            "status": "completed",
            "conclusion": _CONCLUSIONS.get(answer.exit_code, "action_required"),
            "output": {"title": answer.headline[:200], "summary": answer.comment},
        }
        self._api.request("POST", f"{self._repository}/check-runs", check)


class GitLab:
    """A job of GitLab CI. The job's own token cannot write notes, so GATE_TOKEN has to be a token of the project."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        # what the job runs for
        self.base_commit = environment.get("CI_MERGE_REQUEST_DIFF_BASE_SHA", "")
        self.pull_request_head = environment.get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA", "")
        self.commit = environment.get("CI_COMMIT_SHA", "")
        source_branch = environment.get("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME")
        self.branch = source_branch or environment.get("CI_COMMIT_REF_NAME", "")

        # where the answer goes
        token, number = environment.get("GATE_TOKEN", ""), environment.get("CI_MERGE_REQUEST_IID", "")
        project = f"/projects/{environment.get('CI_PROJECT_ID', '')}"
        self._notes = f"{project}/merge_requests/{int(number)}/notes" if number and token else ""
        missing = "ONNXFARM_GITLAB_TOKEN is not set" if number else "this job runs for no merge request"
        self.comment_problem = "" if self._notes else f"No note was written: {missing}."
        self._api = Api(environment.get("CI_API_V4_URL", "https://gitlab.com/api/v4"), {"PRIVATE-TOKEN": token})

    def make_output_fences(self) -> tuple[str, str]:
        return "", ""

    def list_comments(self) -> Iterator[Comment]:
        """Yield the notes that the token's user wrote on the merge request. Raises RefusedError."""
        account_id = self._api.request("GET", "/user")["id"]
        for note in self._api.list_entries(self._notes):
            if note["author"]["id"] == account_id:
                yield Comment(f"{self._notes}/{note['id']}", note["body"])

    def write_comment(self, body: str, path: str) -> None:
        self._api.request("PUT" if path else "POST", path or self._notes, {"body": body})

    def publish_answer(self, answer: Answer, model: str) -> None:
        print(f"{model}: {answer.headline}", flush=True)


def _escape_command_text(text: str, *, in_property: bool = False) -> str:
    # GitHub's own toolkit escapes the same characters
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if in_property else text
