"""Adds a check to `manage.py check`: what an installation allows beyond the defaults."""

from django.conf import settings
from django.core.checks import CheckMessage, Info, register


@register()
def report_allowed_packages(**_: object) -> list[CheckMessage]:
    """Report, as information, the packages that nodes may install beyond the known distributions; empty for none."""
    if not settings.ALLOWED_PACKAGES:
        return []
    names = ", ".join(sorted(settings.ALLOWED_PACKAGES))
    return [
        Info(
            f"Nodes whose owners allow it too may install packages beyond the known distributions: {names}.",
            hint="Set by ONNXFARM_ALLOWED_PACKAGES; leave it empty to allow none.",
            id="onnxfarm.I002",
        )
    ]
