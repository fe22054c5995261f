"""Accounts in Django's admin, for administrators of the installation. Secrets are not stored, so it shows none."""

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin

from farm.accounts.models import AuditEvent, Membership, Share, Team, Token, User

admin.site.register(User, UserAdmin)


class _CreatedElsewhere:
    """Rows that are created by services, and not in Django's admin."""

    def has_add_permission(self, request: object, obj: object = None) -> bool:
        return False


class _ReadOnly(_CreatedElsewhere):
    """Rows that Django's admin only shows."""

    def has_change_permission(self, request: object, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: object, obj: object = None) -> bool:
        return False


class MembershipInline(_ReadOnly, admin.TabularInline):  # type: ignore[type-arg]
    """The members of a team: people join by accepting an invitation, on the team's own page."""

    model = Membership
    extra = 0


@admin.register(Team)
class TeamAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ["name", "quota_bytes", "created_at"]
    inlines = [MembershipInline]


@admin.register(Token)
class TokenAdmin(_CreatedElsewhere, admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ["hint", "user", "name", "expires_at", "last_used_at", "revoked_at"]
    list_select_related = ["user"]
    fields = ["user", "name", "scopes", "expires_at", "revoked_at"]
    readonly_fields = ["user", "scopes"]


@admin.register(Share)
class ShareAdmin(_CreatedElsewhere, admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ["title", "kind", "team", "created_by", "expires_at", "revoked_at", "last_opened_at"]
    list_select_related = ["team", "created_by"]
    fields = ["title", "kind", "subject", "team", "created_by", "expires_at", "revoked_at"]
    readonly_fields = ["title", "kind", "subject", "team", "created_by"]


@admin.register(AuditEvent)
class AuditEventAdmin(_ReadOnly, admin.ModelAdmin):  # type: ignore[type-arg]
    """The audit log, which is append-only."""

    list_display = ["at", "actor", "team", "verb", "subject"]
    list_filter = ["verb"]
    list_select_related = ["actor", "team"]
    search_fields = ["subject"]
