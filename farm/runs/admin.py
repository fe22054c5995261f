"""Shows runs in Django's admin, for inspection: changes go through the services."""

from django.contrib import admin

from farm.runs.models import Attempt, Block, Cell, Comparison, Event, Run

admin.site.register(
    Run,
    list_display=["pk", "version", "state", "outcome", "requested_by", "created_at"],
    list_filter=["state", "outcome"],
    readonly_fields=["state", "outcome", "revision"],
    raw_id_fields=["version", "requested_by", "team"],
)
admin.site.register(
    Block,
    list_display=["pk", "run", "number", "state", "attempt", "failures", "node", "lease_expires_at"],
    list_filter=["state"],
    raw_id_fields=["run", "node", "only_node"],
    readonly_fields=["state", "attempt", "device"],
)
admin.site.register(
    Attempt, list_display=["pk", "block", "number", "node", "state"], exclude=["token_digest"], raw_id_fields=["block"]
)
admin.site.register(
    Cell,
    list_display=["pk", "run", "name", "runtime", "provider", "status"],
    list_filter=["status"],
    raw_id_fields=["run", "variant", "preparation"],
)
admin.site.register(
    Comparison,
    list_display=["pk", "run", "axis", "verdict"],
    list_filter=["verdict"],
    raw_id_fields=["run", "block", "baseline", "candidate"],
)
admin.site.register(Event, list_display=["at", "run", "kind", "text"], raw_id_fields=["run", "block"])
