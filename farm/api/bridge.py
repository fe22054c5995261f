"""Serves pages and the API of people from an event loop. Django is called in a thread once the whole body has arrived.

This is twice as fast as Django's own ASGI handler, which makes a thread for each request. Slow clients take no thread,
because the body is stored first, and a thread is used only while it makes a piece of the answer.
"""

import asyncio
import re
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import IO, TYPE_CHECKING, Any, cast
from urllib.parse import unquote_to_bytes
from weakref import WeakValueDictionary
from wsgiref.util import FileWrapper

from django.conf import settings
from django.core.handlers.wsgi import WSGIRequest
from django.utils.http import parse_header_parameters

from farm.accounts.models import User
from farm.api.auth import check_uploader, identify_sender
from farm.base.asgi import Scope, read_header
from farm.base.bodies import (
    Body,
    ClientGoneError,
    Receive,
    drain_body,
    make_too_large,
    parse_content_length,
    spool_body,
)
from farm.base.errors import API_ROOT
from farm.base.refusals import Invalid, NoSpace, Refusal, TooMany
from farm.contract.node import Problem
from farm.registry.storage import check_free_space, incoming_dir
from farm.registry.upload_handler import check_upload_size

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

    WsgiApplication = Callable[[WSGIEnvironment, StartResponse], Iterable[bytes]]

Send = Callable[[Mapping[str, object]], Awaitable[None]]

THREADS = 8
# threads for slow requests, which hash or unpack files or plan thousands of cells, so that no page waits for them
SLOW_THREADS = 3
# threads for people who come back from the identity provider; the farm asks it for each code, even an invented one
SIGN_IN_THREADS = 2
SIGN_IN_CALLBACK = "/sign-in/openid/back/"
# limit of a body from a client who has not signed in, such as the sign-in form
MAX_STRANGER_BYTES = 8 * 1024
# limit of a form that is no upload: Django's limit of the values, and 64 KiB for the text around them
MAX_FORM_BYTES = settings.DATA_UPLOAD_MAX_MEMORY_SIZE + 64 * 1024
# limit of all that is not files in the form of an upload
AROUND_FILES_BYTES = 1024**2
UPLOADS = re.compile(
    r"/api/v1/uploads(/files/[^/]+)?|/api/v1/versions/\d+/evaluation|/models/upload/|/models/versions/\d+/evaluation/"
)
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
SLOW = re.compile(rf"{UPLOADS.pattern}|/api/v1/uploads/complete|/api/v1/runs|/runs/new/")
# how much of an answer is sent at once
PIECE_BYTES = 256 * 1024


class Bridge:
    """An ASGI application that calls a WSGI application. Other scopes than `http` are ignored."""

    def __init__(self, application: "WsgiApplication") -> None:
        self._application = application
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="page")
        self._slow_threads = ThreadPoolExecutor(SLOW_THREADS, thread_name_prefix="slow")
        self._sign_in_threads = ThreadPoolExecutor(SIGN_IN_THREADS, thread_name_prefix="sign-in")
        # for each person, the bytes so far of each upload that is arriving
        self._uploading: dict[int, dict[object, int]] = {}
        # each person has a single slow request at a time, so that nobody takes all threads
        self._slow_locks: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        is_slow = scope["method"] not in ("GET", "HEAD") and SLOW.fullmatch(scope["path"]) is not None
        try:
            _check_charset(scope)
            length = parse_content_length(scope)
            if length is not None and length <= MAX_STRANGER_BYTES:
                sender = await self._in_thread(identify_sender, _make_bodiless_request(scope)) if is_slow else None
                body = await spool_body(receive, max_bytes=length)
            else:
                request = _make_bodiless_request(scope)
                sender = await self._in_thread(identify_sender, request)
                body = await self._take_long_body(scope, receive, request, sender)
        except Refusal as refusal:
            await drain_body(scope, receive)
            await _refuse(scope, send, refusal)
        except ClientGoneError:
            return
        else:
            with body.file:
                answer = Answer(self._application, _make_environ(scope, body))
                await self._send_answer(answer, await self._begin(answer, scope, is_slow, sender), receive, send)

    async def _take_long_body(self, scope: Scope, receive: Receive, request: WSGIRequest, sender: User | None) -> Body:
        """Read the whole body of a request. Raises ClientGoneError, and refusals as early as possible."""
        length = parse_content_length(scope)
        if sender is None:
            raise make_too_large(f"{length:,}" if length else "some", MAX_STRANGER_BYTES)
        if UPLOADS.fullmatch(scope["path"]) is None:
            if (length or 0) > MAX_FORM_BYTES:
                raise make_too_large(f"{length:,}", MAX_FORM_BYTES)
            return await self._spool(receive, max_bytes=MAX_FORM_BYTES, check_room=lambda size: check_free_space())
        await self._in_thread(check_uploader, request, sender)
        await self._in_thread(check_upload_size, max(0, (length or 0) - AROUND_FILES_BYTES))
        # a piece of a resumable upload is kept even if the connection is cut (docs/uploads.md)
        accepts_partial = scope["method"] == "PATCH" and not read_header(scope, b"upload-checksum")
        return await self._spool_upload(receive, person=sender.pk, accepts_partial=accepts_partial)

    async def _spool_upload(self, receive: Receive, *, person: int, accepts_partial: bool) -> Body:
        """Store the body of an upload. All uploads of a person that are arriving share the limit of a single one."""
        max_bytes = settings.MAX_UPLOAD_BYTES + AROUND_FILES_BYTES
        upload, under_way = object(), self._uploading.setdefault(person, {})

        def check(size: int) -> None:
            check_free_space()
            under_way[upload] = size
            if sum(list(under_way.values())) > max_bytes:
                detail = f"Your uploads that are under way have more than {max_bytes:,} bytes together."
                raise TooMany(detail, retry_s=30, hint="Send one after the other.")

        try:
            return await self._spool(receive, max_bytes=max_bytes, check_room=check, accepts_partial=accepts_partial)
        finally:
            under_way.pop(upload, None)
            if not under_way:
                self._uploading.pop(person, None)

    async def _spool(
        self, receive: Receive, *, max_bytes: int, check_room: Callable[[int], None], accepts_partial: bool = False
    ) -> Body:
        folder = str(incoming_dir())
        try:
            return await spool_body(
                receive, max_bytes=max_bytes, folder=folder, check_room=check_room, accepts_partial=accepts_partial
            )
        except OSError as problem:
            raise NoSpace(f"The upload could not be put aside: {problem.strerror}.") from None

    async def _begin(self, answer: "Answer", scope: Scope, is_slow: bool, sender: User | None) -> bytes:
        """Make the first piece of the answer in a thread for this kind of request: slow, sign-in or page."""
        loop = asyncio.get_running_loop()
        if is_slow:
            async with self._slow_locks.setdefault(sender.pk if sender else 0, asyncio.Lock()):
                return await loop.run_in_executor(self._slow_threads, answer.begin)
        threads = self._sign_in_threads if scope["path"] == SIGN_IN_CALLBACK else self._threads
        return await loop.run_in_executor(threads, answer.begin)

    async def _send_answer(self, answer: "Answer", piece: bytes, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": answer.status, "headers": answer.headers})
        await send({"type": "http.response.body", "body": piece, "more_body": not answer.is_ended})
        if answer.is_ended:
            return
        gone = asyncio.ensure_future(receive())
        try:
            while not answer.is_ended and not gone.done():
                piece = await self._in_thread(answer.next_piece)
                await send({"type": "http.response.body", "body": piece, "more_body": not answer.is_ended})
        finally:
            gone.cancel()
            await self._in_thread(answer.close)

    async def _in_thread(self, call: Callable[..., Any], *arguments: object) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call, *arguments)


class Answer:
    """The answer of a WSGI application, in pieces. Its methods block, so call each of them in a thread."""

    def __init__(self, application: "WsgiApplication", environ: "WSGIEnvironment") -> None:
        self._application, self._environ = application, environ
        self.status = 500
        self.headers: list[tuple[bytes, bytes]] = []
        self.is_ended = False
        self._body: Iterable[bytes] = ()
        self._unsent: Iterator[bytes] = iter(())

    def begin(self) -> bytes:
        """Call the application, set `status` and `headers`, and return the first piece, often the whole answer."""
        self._body = self._application(self._environ, cast("StartResponse", self._start))
        self._unsent = iter(self._body)
        return self.next_piece()

    def next_piece(self) -> bytes:
        """Return the next bytes, PIECE_BYTES or somewhat more.

        The last piece is shorter and may be empty; with it `is_ended` is set and the answer closed.
        """
        piece = bytearray()
        for part in self._unsent:
            piece += part
            if len(piece) >= PIECE_BYTES:
                return bytes(piece)
        self.is_ended = True
        self.close()
        return bytes(piece)

    def close(self) -> None:
        """Close the application's answer, of which nothing more is read. A second call does nothing."""
        body, self._body, self._unsent = self._body, (), iter(())
        if hasattr(body, "close"):
            body.close()

    def _start(self, status: str, headers: list[tuple[str, str]], exc_info: object = None) -> None:
        self.status = int(status.partition(" ")[0])
        self.headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]


def _make_bodiless_request(scope: Scope) -> WSGIRequest:
    return WSGIRequest(_make_environ(scope, Body(cast(IO[bytes], sys.stdin), 0)))


def _check_charset(scope: Scope) -> None:
    """Raise Invalid for a form that is not in UTF-8, which Django would decode by any codec that Python has."""
    kind, options = parse_header_parameters(read_header(scope, b"content-type"))
    charset = options.get("charset", "utf-8")
    if kind in FORMS and charset.lower().replace("_", "-") not in ("utf-8", "utf8"):
        raise Invalid(f"The form is in {charset[:40]!r}; send it in UTF-8.")


def _make_environ(scope: Scope, body: Body) -> "WSGIEnvironment":
    """Make the WSGI environment of a request (PEP 3333), in which texts are bytes decoded as Latin-1."""
    host, port = scope.get("server") or ("", None)
    environ: dict[str, Any] = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(scope["raw_path"]).decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_NAME": host,
        "SERVER_PORT": str(port or 0),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "REMOTE_ADDR": (scope.get("client") or ("",))[0],
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope["scheme"],
        "wsgi.input": body.file,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
        "wsgi.file_wrapper": lambda file, _=0: FileWrapper(file, PIECE_BYTES),
    }
    for name, value in scope["headers"]:
        if b"_" in name:  # in WSGI it would replace the name with `-`, which a proxy may have set
            continue
        key = name.decode("latin-1").upper().replace("-", "_")
        key = key if key == "CONTENT_TYPE" else f"HTTP_{key}"
        text = value.decode("latin-1")
        joint = "; " if key == "HTTP_COOKIE" else ","
        environ[key] = f"{environ[key]}{joint}{text}" if key in environ else text
    environ.pop("HTTP_TRANSFER_ENCODING", None)
    environ.pop("HTTP_CONTENT_LENGTH", None)
    if body.size or scope["method"] not in ("GET", "HEAD"):
        environ["CONTENT_LENGTH"] = str(body.size)
    return environ


async def _refuse(scope: Scope, send: Send, refusal: Refusal) -> None:
    if scope["path"].startswith(API_ROOT):
        kind = b"application/json"
        text = Problem(detail=refusal.detail, code=refusal.code, hint=refusal.hint or None).model_dump_json(
            exclude_none=True
        )
    else:
        kind, text = b"text/plain; charset=utf-8", str(refusal)
    content = text.encode()
    headers = [(b"content-type", kind), (b"content-length", str(len(content)).encode()), (b"connection", b"close")]
    headers += [(name.lower().encode(), value.encode()) for name, value in refusal.headers.items()]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": content})
