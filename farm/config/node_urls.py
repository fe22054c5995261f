"""The URLs of the gateway: the API for nodes."""

from django.urls import path

from farm.gateway.node_api import node_api

urlpatterns = [path("api/node/v1/", node_api.urls)]

handler400 = "farm.base.errors.bad_address"
handler404 = "farm.base.errors.page_not_found"
handler500 = "farm.base.errors.server_error"
