"""The farm's own Celery: its workers are in farm.config.workers. Nodes run another app, in worker.agent.

The database is the outbox, so a message is a hint: no result backend, JSON only, nothing kept in the broker on purpose.
"""

import os

from celery import Celery

from farm.config import broker_transport

broker_transport.register()
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "farm.config.settings")

app = Celery("farm")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.set_default()
