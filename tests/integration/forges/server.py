"""GitHub and GitLab as far as a gate's job speaks with them, on 127.0.0.1; what GitHub has not published is refused."""

import contextlib
import json
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import jsonschema_rs

TOKEN = "ghs_16C7e42F292c6912E7710c838347Ae178B4a"
OPENAPI = json.loads(Path(__file__).with_name("github.json").read_text())["paths"]


@dataclass
class Forge:
    """What was asked of it. `wrong`: requests that its description does not allow; `may_write`: what the token may."""

    url: str = ""
    may_write: bool = True
    redirects_to: str = ""
    comments: list[dict[str, Any]] = field(default_factory=list)
    calls: list[tuple[str, str]] = field(default_factory=list)
    checks: list[dict[str, Any]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    authorizations: set[str] = field(default_factory=set)

    def of(self, method: str) -> list[str]:
        """Paths that were asked with it."""
        return [path for asked, path in self.calls if asked == method]

    def answer(self, method: str, target: str, headers: Message, body: bytes) -> tuple[int, object]:
        url = urlsplit(target)
        self.calls.append((method, url.path))
        self.authorizations |= {value for name in ("Authorization", "PRIVATE-TOKEN") if (value := headers.get(name))}
        if not {f"Bearer {TOKEN}", TOKEN} & self.authorizations:
            return 401, {"message": "Bad credentials"}
        if method != "GET" and not self.may_write:
            return 403, {"message": "Resource not accessible by integration"}
        content = json.loads(body) if body else None
        if url.path.startswith("/api/v4/"):
            return self._as_gitlab(method, url.path, content)
        return self._as_github(method, url.path, dict(parse_qsl(url.query)), content)

    def _as_github(self, method: str, path: str, query: Mapping[str, str], content: Any) -> tuple[int, object]:
        for template, operations in OPENAPI.items():
            names = re.fullmatch(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", template), path)
            if names and method.lower() in operations:
                operation = operations[method.lower()]
                self.wrong += _problems(operation, {**names.groupdict(), **query}, content)
                return operation["answer"]["status"], self._done(operation, names.groupdict(), query, content)
        self.wrong.append(f"{method} {path} is not published")
        return 404, {"message": "Not Found"}

    def _done(self, operation: Any, names: Mapping[str, str], query: Mapping[str, str], content: Any) -> object:
        example = operation["answer"]["example"]
        match operation["operationId"]:
            case "issues/list-comments":
                size, page = int(query.get("per_page", 30)), int(query.get("page", 1))
                own = [each for each in self.comments if each["issue_url"].endswith(f"/{names['issue_number']}")]
                return own[size * (page - 1) : size * page]
            case "issues/create-comment":
                self.comments.append(_comment(example, len(self.comments) + 1, names["issue_number"], content["body"]))
                return self.comments[-1]
            case "issues/update-comment":
                [comment] = [known for known in self.comments if known["id"] == int(names["comment_id"])]
                comment["body"] = content["body"]
                return comment
        self.checks.append(content)
        return example

    def _as_gitlab(self, method: str, path: str, content: Any) -> tuple[int, object]:
        """https://docs.gitlab.com/api/notes/#merge-requests"""
        if path == "/api/v4/user":
            return 200, {"id": 1}
        if not re.fullmatch(r"/api/v4/projects/7/merge_requests/3/notes(/\d+)?", path):
            self.wrong.append(path)
            return 404, {"message": "404 Not Found"}
        if method == "GET":
            return 200, self.comments
        if method == "POST":
            note = {"id": len(self.comments) + 1, "author": {"id": 1}}
            self.comments.append(note)
        else:
            [note] = [known for known in self.comments if known["id"] == int(path.rpartition("/")[2])]
        note["body"] = content["body"]
        return 200, note


def _comment(example: Mapping[str, Any], number: int, issue: str, body: str) -> dict[str, Any]:
    address = f"{example['issue_url'].rpartition('/')[0]}/{issue}"
    user = {**example["user"], "login": "github-actions[bot]", "type": "Bot"}
    return {**example, "id": number, "issue_url": address, "body": body, "user": user}


def _problems(operation: Any, given: Mapping[str, str], content: Any) -> list[str]:
    """Where the request leaves what is published: parameters, and the body by its schema."""
    known = {parameter["name"]: parameter for parameter in operation["parameters"]}
    found = [f"{name} is no parameter" for name in given.keys() - known.keys()]
    for name, value in given.items():
        is_number = known.get(name, {}).get("schema", {}).get("type") == "integer"
        if is_number and not value.isdigit():
            found.append(f"{name} is {value}")
    found += [f"{name} is missing" for name, each in known.items() if each.get("required") and name not in given]
    described = operation["requestBody"].get("content", {}).get("application/json", {}).get("schema")
    if described is not None:
        found += [error.message for error in jsonschema_rs.Draft4Validator(described).iter_errors(content)]
        found += [f"{name} is no property" for name in content.keys() - described["properties"].keys()]
    elif content is not None:
        found.append("it takes no body")
    return found


@contextlib.contextmanager
def forge() -> Iterator[Forge]:
    """One that answers until the `with` ends."""
    known = Forge()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, answer = known.answer(self.command, self.path, self.headers, body)
            content = json.dumps(answer).encode()
            self.send_response(307 if known.redirects_to else status)
            if known.redirects_to:
                self.send_header("Location", known.redirects_to + self.path)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PATCH = do_PUT = _answer  # noqa: N815  as http.server looks for them

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    known.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield known
    finally:
        server.shutdown()
        server.server_close()
