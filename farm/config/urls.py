"""Addresses of the whole project."""

from django.contrib import admin
from django.urls import path
from django.urls.resolvers import URLResolver

urlpatterns: list[URLResolver] = [path("admin/", admin.site.urls)]
