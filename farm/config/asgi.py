"""The nodes' gateway (uvicorn): long polls of many nodes, and the node API; nothing else."""

import os
from typing import cast

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "farm.config.settings")
_django = get_asgi_application()

# after Django is set up: it knows the fleet's rows
from farm.api.brief import ThreadHandler  # noqa: E402
from farm.api.gateway import Application, Gateway  # noqa: E402

application = Gateway(cast(Application, _django), ThreadHandler())
