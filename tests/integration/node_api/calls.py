"""A node's requests over HTTP, with Django's test client."""

import time
from typing import Any

from django.test import Client

from farm.contract import node as messages
from farm.contract import signatures
from farm.contract.version import CONTRACT_VERSION
from tests.responses import Response
from tests.unit.rules.making import make_facts

PREFIX = "/api/node/v1/"
FACTS = make_facts().facts.model_copy(update={"sandbox": "landlock"}).model_dump(mode="json")


class NodeClient:
    """One machine: its key, and its secret once it has one."""

    def __init__(self, name: str = "bench-1") -> None:
        self.name = name
        self.private = signatures.make_private_key()
        self.node_id = ""
        self.secret = ""
        self._client = Client()

    def post(self, address: str, body: Any, *, token: str = "", **headers: str) -> Response:
        sent = {"authorization": f"Bearer {self.secret}", messages.ATTEMPT_TOKEN_HEADER: token, **headers}
        return self._client.post(PREFIX + address, body, content_type="application/json", headers=sent)

    def put(self, address: str, body: bytes, *, token: str) -> Response:
        sent = {"authorization": f"Bearer {self.secret}", messages.ATTEMPT_TOKEN_HEADER: token}
        return self._client.put(PREFIX + address, body, content_type="application/gzip", headers=sent)

    def get(self, address: str, *, token: str = "") -> Response:
        sent = {"authorization": f"Bearer {self.secret}", messages.ATTEMPT_TOKEN_HEADER: token}
        return self._client.get(PREFIX + address, headers=sent)

    def enrol(self, enrolment_code: str, **changes: Any) -> Response:
        body = {
            "code": enrolment_code,
            "name": self.name,
            "public_key": signatures.derive_public_key(self.private),
            "facts": FACTS,
            "contract_version": CONTRACT_VERSION,
        }
        answer = self.post("enrol", {**body, **changes})
        if answer.status_code == 201:
            self.node_id = answer.json()["node_id"]
        return answer

    def ask_for_secret(self, *, signed_at: int | None = None, private: str = "", **changes: Any) -> Response:
        moment = int(time.time()) if signed_at is None else signed_at
        signature = signatures.sign(private or self.private, messages.make_secret_message(self.node_id, moment))
        body = {"node_id": self.node_id, "signed_at": moment, "signature": signature}
        answer = self.post("secret", {**body, **changes})
        if answer.status_code == 200:
            self.secret = answer.json()["secret"]
        return answer

    def hello(self, *, host: str = "", **changes: Any) -> Response:
        body = {
            "contract_version": CONTRACT_VERSION,
            "facts": FACTS,
            "tags": {"cpu": "probe trace: 3 nodes", "x86": "x86_64"},
            "providers": ["CPUExecutionProvider"],
        }
        return self.post("hello", {**body, **changes}, **{messages.HOST_HEADER: host})
