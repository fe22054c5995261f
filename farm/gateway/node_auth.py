"""Authenticates nodes by their bearer secret."""

from typing import cast

from django.http import HttpRequest
from ninja.errors import AuthenticationError
from ninja.security import HttpBearer

from farm.fleet.models import Node
from farm.fleet.selectors import find_node_of_secret
from farm.gateway.admission import UNKNOWN_NODE


class NodeRequest(HttpRequest):
    """A request that was authenticated by a node's secret."""

    node: Node


class NodeAuth(HttpBearer):
    """Authentication by a node's bearer secret, `ofn_…`. Raises AuthenticationError for a secret of no node."""

    def authenticate(self, request: HttpRequest, token: str) -> Node:
        """Return the node of the secret, and set `request.node`. Raises AuthenticationError for a secret of no node."""
        node = find_node_of_secret(token)
        if node is None:
            raise AuthenticationError(message=UNKNOWN_NODE)
        cast(NodeRequest, request).node = node
        return node
