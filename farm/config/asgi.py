"""The nodes' gateway (uvicorn): long polls of many nodes, and the node API."""

import os
import sys

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "farm.config.settings")
_django = get_asgi_application()

# after Django is set up: it knows the fleet's rows
from farm.api.brief import BriefHandler  # noqa: E402
from farm.api.gateway import Gateway  # noqa: E402

# a thread that comes back from the database waits this long, ten times in a claim, for one that computes
sys.setswitchinterval(0.0005)

application = Gateway(_django, BriefHandler())
