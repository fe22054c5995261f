"""The web process (gunicorn): pages, API and uploads."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "farm.config.settings")
application = get_wsgi_application()
