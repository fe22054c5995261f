"""Addresses of the pages."""

from django.urls import path

from dashboard.views import cell, compare, fleet, home, models, new_run, run, settings, sign_in

app_name = "dashboard"
urlpatterns = [
    path("", home.home, name="home"),
    path("models/", models.models, name="models"),
    path("models/upload/", models.upload, name="upload"),
    path("models/<int:model_id>/", models.model, name="model"),
    path("runs/", run.runs, name="runs"),
    path("runs/new/", new_run.new_run, name="new_run"),
    path("runs/plan/", new_run.plan, name="plan"),
    path("runs/<int:run_id>/", run.run, name="run"),
    path("runs/<int:run_id>/cancel/", run.cancel, name="cancel_run"),
    path("runs/<int:run_id>/more/", run.more, name="more_rounds"),
    path("runs/<int:run_id>/cells/<str:cell_id>/", cell.cell, name="cell"),
    path("fleet/", fleet.fleet, name="fleet"),
    path("fleet/invite/", fleet.invite, name="invite"),
    path("fleet/<int:node_id>/", fleet.node, name="node"),
    path("fleet/<int:node_id>/<str:what>/", fleet.order, name="node_order"),
    path("compare/", compare.compare, name="compare"),
    path("settings/", settings.settings, name="settings"),
    path("settings/tokens/", settings.issue, name="issue_token"),
    path("settings/tokens/<int:token_id>/close/", settings.revoke, name="revoke_token"),
    path("sign-in/", sign_in.ask, name="ask_sign_in"),
    path("sign-in/<str:secret>/", sign_in.redeem, name="sign_in"),
    path("sign-out/", sign_in.sign_out, name="sign_out"),
]
