"""The nodes' gateway (uvicorn): long polls of many nodes, and the rest of the node API.

Pages and the people's API are served by gunicorn, see farm.config.wsgi; only what nodes need is reachable here.
"""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "farm.config.settings")

from django.conf import settings
from django.core.asgi import get_asgi_application

# no sessions, static files or pages: each synchronous middleware would cost a node's request a change of thread
settings.MIDDLEWARE = ["django.middleware.security.SecurityMiddleware"]
settings.ROOT_URLCONF = "farm.config.node_urls"

_django = get_asgi_application()

from farm.api.gateway import Gateway  # noqa: E402  # after Django is set up

application = Gateway(_django)
