"""The URLs of the web server: pages, API, and everything else."""

from django.conf import settings
from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from django.views.generic import RedirectView

from farm.api import install
from farm.api.api import api
from farm.api.metrics import metrics
from farm.gateway.node_api import node_api

urlpatterns: list[URLResolver | URLPattern] = [
    # without Django's own form, nobody can guess passwords: people sign in by link or through the identity provider
    path("admin/login/", RedirectView.as_view(url=settings.LOGIN_URL, query_string=True)),
    path("admin/", admin.site.urls),
    path("api/v1/", api.urls),
    path("api/node/v1/", node_api.urls),
    path("metrics", metrics),
    path("install/simple/onnxfarm/", install.index),
    path("install/<str:name>", install.wheel),
    path("", include("dashboard.urls")),
]

handler400 = "farm.base.errors.bad_address"
handler404 = "farm.base.errors.page_not_found"
handler500 = "farm.base.errors.server_error"
