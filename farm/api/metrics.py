"""Figures for Prometheus at `/metrics`: how many nodes, blocks, runs and uploads there are, and how long blocks wait.

Everything is counted at each request, from the database, the broker and the store's disk, so that every web process
gives the same answer. A request needs the token of `ONNXFARM_METRICS_TOKEN`, or comes from the farm's own machine.
"""

import hmac
import ipaddress
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from farm.accounts.ticks import tick_ages_s
from farm.base.errors import make_problem_response
from farm.contract.version import CONTRACT_VERSION, DELIVERY_QUEUE, PREPARE_QUEUE, SETTLE_QUEUE, TICK_QUEUE
from farm.registry.confinement import current_confinement
from farm.runs.broker import count_messages
from farm.runs.selectors.backlog import count_rows, oldest_queued_age_s, oldest_reported_age_s, stored_bytes

# headers that proxies add; with one of them, the address of the connection is that of a proxy
FORWARDED = ("X-Forwarded-For", "X-Forwarded-Host", "Forwarded", "X-Real-IP")
AGE_WORDS = "Seconds since a duty of the ticks process last ran to its end; growing: the process is away or hangs."
QUEUE_WORDS = "Messages that wait in the broker for the farm's own workers; 0 where the broker does not tell."
HINT = "Set ONNXFARM_METRICS_TOKEN on the farm and send it: Authorization: Bearer …"


class FarmCollector(Collector):
    """Collects the farm's figures from its tables, its broker and its disk."""

    def collect(self) -> Iterator[Metric]:
        """Yield the farm's figures as they are now, counted anew at each call."""
        yield InfoMetricFamily("onnxfarm", "What this farm speaks.", value={"contract": str(CONTRACT_VERSION)})
        confinement = current_confinement()
        value = {"level": confinement.level, "unsandboxed": "accepted" if confinement.is_accepted else "refused"}
        yield InfoMetricFamily("onnxfarm_sandbox", "What holds whatever reads an upload, on this machine.", value=value)
        yield GaugeMetricFamily(
            "onnxfarm_reads_uploads",
            "1 while uploads are read; 0: no sandbox holds.",
            value=int(confinement.reads_uploads),
        )
        for family in count_rows():
            yield _make_gauge(f"onnxfarm_{family.name}", family.words, family.labels, family.values)
        yield GaugeMetricFamily(
            "onnxfarm_oldest_queued_block_seconds",
            "How long the block that has waited longest for a node has been queued; 0 when none is.",
            value=oldest_queued_age_s(),
        )
        yield GaugeMetricFamily(
            "onnxfarm_oldest_reported_block_seconds",
            "How long ago the block was measured that has waited longest to be settled; 0 when none waits.",
            value=oldest_reported_age_s(),
        )
        yield _make_gauge("onnxfarm_tick_age_seconds", AGE_WORDS, ["tick"], {(k,): v for k, v in tick_ages_s().items()})
        waiting = count_messages([PREPARE_QUEUE, TICK_QUEUE, SETTLE_QUEUE, DELIVERY_QUEUE])
        yield _make_gauge("onnxfarm_queue_messages", QUEUE_WORDS, ["queue"], {(k,): v for k, v in waiting.items()})
        yield GaugeMetricFamily("onnxfarm_stored_bytes", "Bytes of all stored files.", value=stored_bytes())
        folder = Path(settings.STORE_DIR)
        free = shutil.disk_usage(folder if folder.exists() else folder.parent).free
        yield GaugeMetricFamily("onnxfarm_store_free_bytes", "Free bytes on the store's disk.", value=free)


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Answer the figures as Prometheus reads them; 401 without the token from another machine."""
    if not _may_read(request):
        return make_problem_response(
            401, "The metrics need a token, or a request from the farm's own machine.", hint=HINT
        )
    registry = CollectorRegistry(auto_describe=False)
    registry.register(FarmCollector())
    ProcessCollector(registry=registry)
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


def _may_read(request: HttpRequest) -> bool:
    wanted: str = settings.METRICS_TOKEN
    scheme, _, sent = request.headers.get("Authorization", "").partition(" ")
    if wanted and scheme.lower() == "bearer" and hmac.compare_digest(sent.strip().encode(), wanted.encode()):
        return True
    return _is_from_here(request)


def _is_from_here(request: HttpRequest) -> bool:
    """Say whether the connection comes directly from this machine, not through a proxy on it."""
    if settings.ENVIRONMENT.behind_proxy or any(header in request.headers for header in FORWARDED):
        return False
    try:
        return ipaddress.ip_address(request.META.get("REMOTE_ADDR") or "").is_loopback
    except ValueError:
        return False


def _make_gauge(
    name: str, words: str, labels: Iterable[str], values: Mapping[tuple[str, ...], float]
) -> GaugeMetricFamily:
    gauge = GaugeMetricFamily(name, words, labels=list(labels))
    for key, value in values.items():
        gauge.add_metric(list(key), value)
    return gauge
