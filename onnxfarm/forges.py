"""The forges whose pipelines run a gate, GitHub and GitLab: what a job runs for, and how its answer is published.

A token is sent to the forge's own address only, and never follows a redirect.
"""

import json
import secrets
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any, Protocol

from onnxfarm.gate_process import CANCELLED, FAILED, PASSED, TIMED_OUT

PER_PAGE, MAX_PAGES = 100, 30
TIMEOUT_S = 30


class RefusedError(Exception):
    """A forge refused a request. `status` is that of HTTP, or 0 where the forge was not reached."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect, because the token would be sent to the next address too."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


@dataclass(frozen=True)
class Api:
    """JSON over HTTP with a token."""

    url: str
    headers: Mapping[str, str]

    def ask(self, method: str, path: str, content: object = None) -> Any:
        """Send a request, and return the answer's JSON. `content` is its body, as plain values.

        Raises RefusedError, whose text has no header and nothing of what was sent.
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
        """Yield every entry of a list, page by page, up to MAX_PAGES pages. Raises RefusedError."""
        for page in range(1, MAX_PAGES + 1):
            entries = self.ask("GET", f"{path}?per_page={PER_PAGE}&page={page}")
            yield from entries
            if len(entries) < PER_PAGE:
                return


@dataclass(frozen=True)
class Answer:
    """The answer of a gate: its exit code, a line, and a comment. `is_open`: it passed with something undecided.

    `is_news`: a comment is written also where there is none to replace.
    """

    code: int
    line: str
    comment: str
    is_news: bool = True
    is_open: bool = False

    @property
    def verdict(self) -> str:
        """The answer in a word or two: passed, failed, cancelled, or not measured for any other exit code."""
        if self.code in CANCELLED:
            return "cancelled"
        return {PASSED: "passed", FAILED: "failed"}.get(self.code, "not measured")


class Forge(Protocol):
    """The forge of a job. `base` is the commit to compare with, `branch` and `head` what the job runs for.

    `tip`: the newest commit of the pull request itself, the second parent of its merge. Each is empty where there is
    none. `mute`: why the job cannot write comments; empty where it can.
    """

    base: str
    branch: str
    head: str
    tip: str
    mute: str

    def make_fences(self) -> tuple[str, str]:
        """Make two lines to print around a program's output, so that nothing in it is a command of the pipeline."""

    def list_comments(self) -> Iterator[tuple[str, str]]:
        """Yield (path, text) of each comment that may be the gate's own: of the job's account, on GitHub of every bot.

        Not to be called where `mute` is set.
        """

    def write_comment(self, body: str, path: str) -> None:
        """Replace the text of the comment at `path`, or write a new one where `path` is empty. Raises RefusedError."""

    def publish_answer(self, answer: Answer, model: str) -> None:
        """Print the answer as a line; on GitHub also as outputs of the step and as a check. Raises RefusedError.

        `model`: the path of its file in the repository.
        """


class GitHub:
    """A job of GitHub Actions."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        event = json.loads(Path(environment["GITHUB_EVENT_PATH"]).read_text())
        pull = event.get("pull_request") or {}
        self.base = (pull.get("base") or {}).get("sha") or (event.get("merge_group") or {}).get("base_sha", "")
        self.tip = (pull.get("head") or {}).get("sha", "")
        self.head = self.tip or environment.get("GITHUB_SHA", "")
        self.branch = (pull.get("head") or {}).get("ref") or environment.get("GITHUB_REF_NAME", "")
        self._repository = f"/repos/{environment['GITHUB_REPOSITORY']}"
        self._issue = f"{self._repository}/issues/{int(pull['number'])}" if pull else ""
        self.mute = "" if pull else "No comment was written: this job runs for no pull request."
        self._output = environment.get("GITHUB_OUTPUT")
        token = environment.get("GATE_TOKEN", "")
        headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
        headers |= {"Authorization": f"Bearer {token}"} if token else {}
        self._api = Api(environment.get("GITHUB_API_URL", "https://api.github.com"), headers)

    def make_fences(self) -> tuple[str, str]:
        word = secrets.token_hex(16)
        return f"::stop-commands::{word}", f"::{word}::"

    def list_comments(self) -> Iterator[tuple[str, str]]:
        for comment in self._api.list_entries(f"{self._issue}/comments"):
            # a person may have copied the mark, and could change the comment later
            if (comment.get("user") or {}).get("type") == "Bot":
                yield f"{self._repository}/issues/comments/{comment['id']}", comment.get("body") or ""

    def write_comment(self, body: str, path: str) -> None:
        self._api.ask("PATCH" if path else "POST", path or f"{self._issue}/comments", {"body": body})

    def publish_answer(self, answer: Answer, model: str) -> None:
        """Write the step's outputs, print an annotation at the model, and make a check. Raises RefusedError."""
        if self._output:
            with Path(self._output).open("a") as file:
                file.write(f"verdict={answer.verdict}\nexit-code={answer.code}\n")
        kind = "error" if answer.verdict not in ("passed", "cancelled") else "warning" if answer.is_open else "notice"
        location = f"file={_escape(model, in_property=True)},line=1,title=onnxfarm gate"
        print(f"::{kind} {location}::{_escape(answer.line)}", flush=True)
        conclusions = {PASSED: "success", FAILED: "failure", TIMED_OUT: "timed_out"}
        conclusions |= dict.fromkeys(CANCELLED, "cancelled")
        check = {"name": f"onnxfarm gate: {model}"[:100], "head_sha": self.head, "status": "completed"}
        output = {"title": answer.line[:200], "summary": answer.comment}
        conclusion = conclusions.get(answer.code, "action_required")
        self._api.ask("POST", f"{self._repository}/check-runs", {**check, "conclusion": conclusion, "output": output})


class GitLab:
    """A job of GitLab CI. Its own token cannot write notes, so it needs a token of the project."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.base = environment.get("CI_MERGE_REQUEST_DIFF_BASE_SHA", "")
        names = ("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME", "CI_COMMIT_REF_NAME")
        self.branch = next(filter(None, map(environment.get, names)), "") or ""
        self.head = environment.get("CI_COMMIT_SHA", "")
        self.tip = environment.get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA", "")
        token, number = environment.get("GATE_TOKEN", ""), environment.get("CI_MERGE_REQUEST_IID", "")
        project = f"/projects/{environment.get('CI_PROJECT_ID', '')}"
        self._notes = f"{project}/merge_requests/{int(number)}/notes" if number and token else ""
        missing = "ONNXFARM_GITLAB_TOKEN is not set" if number else "this job runs for no merge request"
        self.mute = "" if self._notes else f"No note was written: {missing}."
        self._api = Api(environment.get("CI_API_V4_URL", "https://gitlab.com/api/v4"), {"PRIVATE-TOKEN": token})

    def make_fences(self) -> tuple[str, str]:
        return "", ""

    def list_comments(self) -> Iterator[tuple[str, str]]:
        """Yield (path, text) of each note of the token's own account on the merge request. Raises RefusedError."""
        account_id = self._api.ask("GET", "/user")["id"]
        for note in self._api.list_entries(self._notes):
            if note["author"]["id"] == account_id:
                yield f"{self._notes}/{note['id']}", note["body"]

    def write_comment(self, body: str, path: str) -> None:
        self._api.ask("PUT" if path else "POST", path or self._notes, {"body": body})

    def publish_answer(self, answer: Answer, model: str) -> None:
        print(f"{model}: {answer.line}", flush=True)


def _escape(text: str, *, in_property: bool = False) -> str:
    """Escape text inside a workflow command, as GitHub's own toolkit escapes it."""
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if in_property else text
