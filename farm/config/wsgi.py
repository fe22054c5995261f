"""The WSGI application of the web server: pages, API and uploads. Nodes are served by the gateway only."""

import gc
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from django.core.wsgi import get_wsgi_application
from django.db import connections
from django.urls import get_resolver

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "farm.config.settings")
_django = get_wsgi_application()

# each thread keeps its database connection: opening one takes longer than a small page
CONNECTION_AGE_S = 60
for database in connections.settings.values():
    database.update(CONN_MAX_AGE=CONNECTION_AGE_S, CONN_HEALTH_CHECKS=True)

# import every page's module now: one that cannot be imported later would answer a user with 500
get_resolver().url_patterns  # noqa: B018

# after Django is set up
from django.conf import settings  # noqa: E402

from farm.api.bridge import Bridge  # noqa: E402
from farm.base.forwarded import Forwarded  # noqa: E402
from farm.contract.node import ELSEWHERE, GATEWAY_HEADER, Problem  # noqa: E402
from farm.gateway.endpoints import PREFIX  # noqa: E402


def application(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
    """WSGI application: Django. URLs of the API for nodes are answered with 404 and the gateway's address."""
    if environ.get("PATH_INFO", "").startswith(PREFIX):
        url = str(settings.GATEWAY_URL)
        problem = Problem(detail=f"Nodes are served by the gateway, {url}; use that address.", code=ELSEWHERE)
        kind = ("Content-Type", "application/json")
        start_response("404 Not Found", [kind, ("Connection", "close"), (GATEWAY_HEADER, url)])
        return [problem.model_dump_json().encode()]
    return _django(environ, start_response)


# ASGI: what farm.config.server serves
bridge = Forwarded(Bridge(application))

# A full garbage collection took 0.5 s in the middle of a page, because it visits all imported modules and every cached
# document. So the modules are excluded from here on, and collections are rarer.
gc.collect()
gc.freeze()
gc.set_threshold(20_000, 20, 20)
