"""Nodes in Django's admin, to look at; orders go through the services."""

from django.contrib import admin

from farm.fleet.models import EnrolmentCode, Node, NodeEvent, NodeSecret, NullEstimate


@admin.register(Node)
class NodeAdmin(admin.ModelAdmin[Node]):
    list_display = ["name", "team", "state", "health", "sandbox", "seen_at"]
    list_filter = ["state", "health"]
    readonly_fields = ["public_key", "fingerprint", "state", "health"]


@admin.register(NodeEvent)
class NodeEventAdmin(admin.ModelAdmin[NodeEvent]):
    list_display = ["at", "node", "kind", "text"]


@admin.register(NodeSecret)
class NodeSecretAdmin(admin.ModelAdmin[NodeSecret]):
    list_display = ["hint", "node", "expires_at", "revoked_at"]
    exclude = ["digest"]


@admin.register(EnrolmentCode)
class EnrolmentCodeAdmin(admin.ModelAdmin[EnrolmentCode]):
    list_display = ["team", "created_by", "expires_at", "used_at", "node"]
    exclude = ["digest"]


@admin.register(NullEstimate)
class NullEstimateAdmin(admin.ModelAdmin[NullEstimate]):
    list_display = ["node", "cell_class", "rounds", "estimate", "verdict"]
