"""The registry in Django's admin, read-only but for models: artifacts and files are immutable."""

from django.contrib import admin

from farm.registry.models import Artifact, Model, Preparation, Variant, Version


@admin.register(Model)
class ModelAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ["name", "team", "created_by", "created_at"]
    list_select_related = ["team", "created_by"]
    search_fields = ["name"]


class ReadOnly(admin.ModelAdmin):  # type: ignore[type-arg]
    """Rows that the admin shows and nobody edits there."""

    def has_add_permission(self, request: object) -> bool:
        return False

    def has_change_permission(self, request: object, obj: object = None) -> bool:
        return False


@admin.register(Version)
class VersionAdmin(ReadOnly):
    list_display = ["__str__", "state", "tries", "uploaded_by", "created_at"]
    list_filter = ["state"]
    list_select_related = ["model", "uploaded_by"]


@admin.register(Artifact)
class ArtifactAdmin(ReadOnly):
    list_display = ["main", "sha256", "team", "bytes", "created_at"]
    list_select_related = ["team"]
    search_fields = ["sha256"]


@admin.register(Variant)
class VariantAdmin(ReadOnly):
    list_display = ["__str__", "state", "reason_code", "tries", "created_at"]
    list_filter = ["state"]
    list_select_related = ["artifact"]


@admin.register(Preparation)
class PreparationAdmin(ReadOnly):
    list_display = ["__str__", "state", "reason_code", "reference_of", "tries", "created_at"]
    list_filter = ["state"]
    list_select_related = ["artifact"]
