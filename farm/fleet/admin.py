"""Nodes in Django's admin, to look at; orders go through the services."""

from django.contrib import admin

from farm.fleet.models import EnrolmentCode, Lending, Node, NodeEvent, NodeSecret, NullEstimate

admin.site.register(
    Node,
    list_display=["name", "team", "state", "health", "sandbox", "seen_at"],
    list_filter=["state", "health"],
    readonly_fields=["public_key", "fingerprint", "state", "health"],
)
admin.site.register(
    Lending, list_display=["node", "team", "state", "asked_by", "answered_by"], readonly_fields=["state"]
)
admin.site.register(NodeEvent, list_display=["at", "node", "kind", "text"])
admin.site.register(NodeSecret, list_display=["hint", "node", "expires_at", "revoked_at"], exclude=["digest"])
admin.site.register(
    EnrolmentCode, list_display=["team", "created_by", "expires_at", "used_at", "node"], exclude=["digest"]
)
admin.site.register(NullEstimate, list_display=["node", "cell_class", "rounds", "estimate", "verdict"])
