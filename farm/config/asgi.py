"""The ASGI application of the gateway: the API for nodes, with their long polls, and nothing else."""

import os
from typing import Any, cast

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "farm.config.settings")
django.setup(set_prefix=False)

# these import models, so Django has to be set up before
from django.core.handlers.asgi import ASGIHandler  # noqa: E402

from farm.base.forwarded import Forwarded  # noqa: E402
from farm.gateway.application import Application, Gateway  # noqa: E402
from farm.gateway.calls import ThreadHandler  # noqa: E402

URLCONF = "farm.config.node_urls"


class NodeHandler(ASGIHandler):
    """Django with only the URLs for nodes: the modules of pages take tens of megabytes of memory."""

    def create_request(self, scope: Any, body_file: Any) -> Any:
        """Return (request, None), with the URLs for nodes; or (None, response) for a request that cannot be read."""
        request, error_response = super().create_request(scope, body_file)
        if request is not None:
            request.urlconf = URLCONF
        return request, error_response


application = Forwarded(Gateway(cast(Application, NodeHandler()), ThreadHandler(URLCONF)))
