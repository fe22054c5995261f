"""The nodes' gateway (uvicorn): long polls of many nodes, and the node API; nothing else."""

import os
from typing import Any, cast

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "farm.config.settings")
django.setup(set_prefix=False)

# after Django is set up: it knows the fleet's rows
from django.core.handlers.asgi import ASGIHandler  # noqa: E402

from farm.base.forwarded import Forwarded  # noqa: E402
from farm.gateway.application import Application, Gateway  # noqa: E402
from farm.gateway.calls import ThreadHandler  # noqa: E402

ADDRESSES = "farm.config.node_urls"


class NodeHandler(ASGIHandler):
    """Django with the addresses of nodes alone: pages are tens of megabytes that no gateway needs."""

    def create_request(self, scope: Any, body_file: Any) -> Any:
        """Make the request, with the addresses of nodes, and None; or None and the answer where it cannot be read."""
        request, refusal = super().create_request(scope, body_file)
        if request is not None:
            request.urlconf = ADDRESSES
        return request, refusal


application = Forwarded(Gateway(cast(Application, NodeHandler()), ThreadHandler(ADDRESSES)))
