"""An identity provider of a few lines that lies on request: what a certified one never does."""

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT, SECRET = "farm", "not-shown-anywhere"


@cache
def key(number: int = 0) -> rsa.RSAPrivateKey:
    """A key pair; making one takes a while."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


class Issuer:
    """`claims` and `userinfo` are what it says of whoever signs in; the rest is how it misbehaves."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.key = key()
        self.signing_key: Any = self.key
        self.algorithm = "RS256"
        self.claims: dict[str, Any] = {"sub": "u-1", "preferred_username": "ada", "groups": ["vision-dev"]}
        self.userinfo: dict[str, Any] = {}
        self.document: dict[str, Any] = {}
        self.answers: dict[str, tuple[int, bytes]] = {}
        self.asked: list[str] = []
        # how the farm said who it is: in a header, or in the form
        self.client: dict[str, object] = {}
        self._codes: dict[str, tuple[str, str]] = {}

    def code(self, address: str) -> str:
        """What a browser would come back with, after its person signed in at that address: code and state."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        assert asked["code_challenge_method"] == "S256"
        assert asked["response_type"] == "code"
        assert "openid" in asked["scope"].split()
        code = secrets.token_urlsafe(8)
        self._codes[code] = (asked["nonce"], asked["code_challenge"])
        return f"{urlsplit(asked['redirect_uri']).path}?code={code}&state={asked['state']}"

    def answer(self, path: str, form: dict[str, list[str]], *, header: str = "") -> tuple[int, bytes]:
        self.asked.append(path)
        if path == "/token":
            self.client = {"header": header, "form": form.get("client_id"), "secret": form.get("client_secret")}
        if path in self.answers:
            return self.answers[path]
        made = {
            "/.well-known/openid-configuration": self._document,
            "/keys": self._keys,
            "/token": lambda: self._token(form),
            "/me": lambda: {"sub": self.claims["sub"]} | self.userinfo,
        }.get(path)
        return (404, b"{}") if made is None else (200, json.dumps(made()).encode())

    def _document(self) -> dict[str, Any]:
        parts = {"authorization": "auth", "token": "token", "userinfo": "me"}
        known = {f"{name}_endpoint": f"{self.url}/{path}" for name, path in parts.items()}
        return {"issuer": self.url, "jwks_uri": f"{self.url}/keys"} | known | self.document

    def _keys(self) -> dict[str, Any]:
        key = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key()))
        return {"keys": [key | {"kid": "one", "use": "sig", "alg": "RS256"}]}

    def _token(self, form: dict[str, list[str]]) -> dict[str, Any]:
        nonce, challenge = self._codes.pop(form["code"][0])
        proof = hashlib.sha256(form["code_verifier"][0].encode()).digest()
        assert base64.urlsafe_b64encode(proof).rstrip(b"=").decode() == challenge
        now = int(time.time())
        facts = {"iss": self.url, "aud": CLIENT, "iat": now, "exp": now + 60, "nonce": nonce} | self.claims
        token = jwt.encode(facts, self.signing_key, algorithm=self.algorithm, headers={"kid": "one"})
        return {"access_token": "opaque", "token_type": "Bearer", "id_token": token, "expires_in": "soon"}


@contextmanager
def serving() -> Iterator[Issuer]:
    """One on a port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send({})

        def do_POST(self) -> None:
            self._send(parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode()))

        def _send(self, form: dict[str, list[str]]) -> None:
            header = self.headers.get("Authorization", "")
            status, body = issuer.answer(urlsplit(self.path).path, form, header=header)
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", body.decode())
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing: a failed test says what it has to say."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    issuer = Issuer(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
