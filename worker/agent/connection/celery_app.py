"""The node's Celery app: an ordinary worker on the farm's gateway, one block at a time.

The settings follow from the faults in RELIABILITY.md: JSON only, no result backend, prefetch 1, no remote control,
gossip, mingle or events; acknowledgements only count for prefetch. The pool is one of threads, because the runner is a
separate process, and the worker's loop has to stay free for signals.
"""

from celery import Celery
from kombu.entity import Queue

from worker.agent.connection import transport
from worker.agent.connection.mailbox import Mailbox

SETTINGS = {
    "accept_content": ["json"],
    "task_serializer": "json",
    "result_serializer": "json",
    "result_backend": None,
    "task_ignore_result": True,
    "task_acks_late": True,
    "worker_prefetch_multiplier": 1,
    "worker_concurrency": 1,
    "worker_pool": "threads",
    "worker_enable_remote_control": False,
    "worker_send_task_events": False,
    "task_send_sent_event": False,
    "worker_hijack_root_logger": False,
    "worker_redirect_stdouts": False,
    "worker_cancel_long_running_tasks_on_connection_loss": False,
    "broker_connection_retry_on_startup": True,
    "broker_heartbeat": 0,
    "task_create_missing_queues": True,
    "timezone": "UTC",
}


def make_app(*, gateway_url: str, queues: tuple[str, ...], mailbox: Mailbox) -> Celery:
    """Make the Celery app of one node, which gets the messages of `queues` from the mailbox."""
    transport.register_transport()
    app = Celery("onnxfarm-node", set_as_current=True)
    app.conf.update(SETTINGS)
    app.conf.update(
        broker_url=f"{transport.NAME}+{gateway_url}",
        broker_transport_options={"mailbox": mailbox},
        task_queues=[Queue(name, no_declare=True) for name in queues],  # type: ignore[no-untyped-call]
    )
    return app
