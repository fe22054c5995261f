"""The web process (gunicorn): pages, API and uploads."""

import os

from django.core.wsgi import get_wsgi_application
from django.db import connections

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "farm.config.settings")
application = get_wsgi_application()

# each thread keeps its connection, which costs more to open than a small page takes; the gateway's threads come and go
KEPT_S = 60
for each in connections.settings.values():
    each.update(CONN_MAX_AGE=KEPT_S, CONN_HEALTH_CHECKS=True)
