"""Where a pipeline runs, GitHub Actions or GitLab CI: what it runs for, and how an answer is told there.

A token is sent to the forge's own address and nowhere else, not even where that redirects to.
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
PATIENCE_S = 30


class RefusedError(Exception):
    """A forge did not do what it was asked; `status` 0: it was not reached."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows nothing: the next address would be sent the token too."""

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
            with urllib.request.build_opener(_Stay).open(request, timeout=PATIENCE_S) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as problem:
            raise RefusedError(problem.code, f"{method} {path} was answered {problem.code}") from None
        except (OSError, ValueError, HTTPException) as problem:
            raise RefusedError(0, f"{method} {path} was not answered ({type(problem).__name__})") from None

    def list_entries(self, path: str) -> Iterator[Mapping[str, Any]]:
        """Yield every entry of a list, page by page. Raises RefusedError."""
        for page in range(1, MAX_PAGES + 1):
            entries = self.ask("GET", f"{path}?per_page={PER_PAGE}&page={page}")
            yield from entries
            if len(entries) < PER_PAGE:
                return


@dataclass(frozen=True)
class Answer:
    """What a gate came to: its exit code, in a line, and as a comment. `is_news`: a new comment is written for it.

    `is_open`: it passed, and somebody should look all the same.
    """

    code: int
    line: str
    comment: str
    is_news: bool = True
    is_open: bool = False

    @property
    def verdict(self) -> str:
        if self.code in CANCELLED:
            return "cancelled"
        return {PASSED: "passed", FAILED: "failed"}.get(self.code, "not measured")


class Forge(Protocol):
    """Where the pipeline runs. `base`: the commit to compare with; `branch` and `head`: what it runs for.

    `tip`: the newest commit of a pull request itself, which its merge has as second parent. Each is empty where there
    is none.
    """

    base: str
    branch: str
    head: str
    tip: str
    # why nothing can be commented on here; empty where something can
    mute: str

    def make_fences(self) -> tuple[str, str]:
        """Make two lines to print around a program's output, between which nothing in it commands the pipeline."""

    def list_comments(self) -> Iterator[tuple[str, str]]:
        """Yield (path, text) of every comment that this pipeline itself wrote; not called where `mute` is set."""

    def write_comment(self, body: str, path: str) -> None:
        """Write a new comment, or another text for the one of `path` where that is not empty. Raises RefusedError."""

    def publish_answer(self, answer: Answer, model: str) -> None:
        """Tell the answer in the forge's other ways: a line, outputs of the step, a check. Raises RefusedError."""


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
            # a person may have written the same mark, and could change what is written there
            if (comment.get("user") or {}).get("type") == "Bot":
                yield f"{self._repository}/issues/comments/{comment['id']}", comment.get("body") or ""

    def write_comment(self, body: str, path: str) -> None:
        self._api.ask("PATCH" if path else "POST", path or f"{self._issue}/comments", {"body": body})

    def publish_answer(self, answer: Answer, model: str) -> None:
        if self._output:
            with Path(self._output).open("a") as file:
                file.write(f"verdict={answer.verdict}\nexit-code={answer.code}\n")
        kind = "error" if answer.verdict not in ("passed", "cancelled") else "warning" if answer.is_open else "notice"
        where = f"file={_escape(model, in_property=True)},line=1,title=onnxfarm gate"
        print(f"::{kind} {where}::{_escape(answer.line)}", flush=True)
        conclusions = {PASSED: "success", FAILED: "failure", TIMED_OUT: "timed_out"}
        conclusions |= dict.fromkeys(CANCELLED, "cancelled")
        check = {"name": f"onnxfarm gate: {model}"[:100], "head_sha": self.head, "status": "completed"}
        output = {"title": answer.line[:200], "summary": answer.comment}
        conclusion = conclusions.get(answer.code, "action_required")
        self._api.ask("POST", f"{self._repository}/check-runs", {**check, "conclusion": conclusion, "output": output})


class GitLab:
    """A job of GitLab CI; its own token writes no notes, so that one of the project's is needed."""

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
