"""What Django's test client answers with: its stubs name a class that does not exist when tests run."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from django.test.client import _MonkeyPatchedWSGIResponse as Response
else:
    from django.http import HttpResponse as Response

__all__ = ["Response"]
