"""The farm's own Celery: its workers are in farm.config.processes. Nodes run another app, in worker.agent.

The database is the outbox, so a message is a hint: no result backend, JSON only, nothing kept in the broker on purpose.
"""

import os

from celery import Celery

from farm.config import beat, broker_transport

broker_transport.register()
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "farm.config.settings")
# Celery would have each worker look at every page's address, 30 MB of modules, and drop what the checks say
os.environ.setdefault("CELERY_SKIP_CHECKS", "yes")

app = Celery("farm")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
beat.add_ticking_option(app)
app.set_default()
