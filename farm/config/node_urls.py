"""Addresses of the gateway: what nodes may ask, and nothing else."""

from django.urls import URLPattern, URLResolver, path

from farm.api.node import node_api

urlpatterns: list[URLResolver | URLPattern] = [path("api/node/v1/", node_api.urls)]

handler404 = "farm.api.errors.page_not_found"
handler500 = "farm.api.errors.server_error"
