"""Addresses of the gateway: those of nodes."""

from django.urls import path

from farm.api.node import node_api

urlpatterns = [path("api/node/v1/", node_api.urls)]

handler400 = "farm.api.errors.bad_address"
handler404 = "farm.api.errors.page_not_found"
handler500 = "farm.api.errors.server_error"
