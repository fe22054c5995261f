"""The nodes' gateway (uvicorn): long polls of many nodes."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "farm.config.settings")
application = get_asgi_application()
