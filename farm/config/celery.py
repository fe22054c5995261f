"""The Celery app of the farm. Its workers are in farm.config.processes. Nodes run another app, in worker.agent.

The database is the outbox, so a message is only a hint: there is no result backend, and the broker may lose everything.
"""

import os

from celery import Celery

from farm.config import beat, broker_transport

broker_transport.register()
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "farm.config.settings")
# otherwise Celery runs Django's checks in each worker and ignores their results; they import all pages, 30 MB
os.environ.setdefault("CELERY_SKIP_CHECKS", "yes")

app = Celery("farm")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
beat.add_ticking_option(app)
app.set_default()
