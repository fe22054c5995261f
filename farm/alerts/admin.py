"""Watches, alerts and messages in Django's admin, to look at; what changes them goes through the services."""

from django.contrib import admin

from farm.alerts.models import Alert, Delivery, Release, Watch, WatchRound

admin.site.register(Watch, list_display=["name", "team", "distribution", "reference", "is_active", "problem"])
admin.site.register(
    WatchRound,
    list_display=["watch", "version", "cause", "old", "new", "state", "outcome", "created_at"],
    list_filter=["state", "outcome", "cause"],
    readonly_fields=["state", "outcome"],
)
admin.site.register(
    Alert,
    list_display=["id", "watch", "model", "node", "good", "bad", "state", "opened_at"],
    list_filter=["state", "distribution"],
    readonly_fields=["state"],
)
admin.site.register(
    Delivery,
    list_display=["channel", "kind", "state", "tries", "problem", "created_at", "sent_at"],
    list_filter=["state", "kind"],
    readonly_fields=["state", "message_id"],
)
admin.site.register(Release, list_display=["distribution", "version", "is_prerelease", "is_gone", "seen_at"])
