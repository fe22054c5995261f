"""Who may open which address. A new address needs a line here, or `test_every_address_has_a_line` fails.

One line an address and method, with the route as Django spells it; one column for each who asks. Everything that routes
name belongs to the team “vision”: `owner` is its admin, `mate` a member, `viewer` may only look; `stranger` is admin of
another team, `nobody` has not signed in; `node` is a node of “vision” that holds a block, `other` one of the stranger's
team that has learnt the node's attempt token.

People send a token to the API and a session to pages; nodes send their secret to both.

    ok       2xx                       no    403: known, but not allowed
    moved    3xx, to another page      404   nothing that they may know of
    sign-in  sent to the sign-in page  401   no valid token, or of the wrong kind
    409      may, but the state does not allow it: no run stands behind this alert, it is open already
    422      may, but what it sent is none: here no zip

A page says some refusals on the page that it moves to: `test_whoever_may_not_write_changes_nothing` looks at what was
written instead.
"""

from typing import Final, NamedTuple

COLUMNS: Final = ("owner", "mate", "viewer", "stranger", "nobody", "node", "other")

TABLE: Final = """
# the API of people and programs
GET    api/v1/openapi.json                                       ok    ok    ok    ok    ok    ok    ok
GET    api/v1/docs                                               ok    ok    ok    ok    ok    ok    ok
GET    api/v1/                                                   404   404   404   404   404   404   404
GET    api/v1/me                                                 ok    ok    ok    ok    401   401   401
GET    api/v1/search                                             422   422   422   422   401   401   401
GET    api/v1/tokens                                             ok    ok    ok    ok    401   401   401
POST   api/v1/tokens                                             ok    ok    ok    ok    401   401   401
DELETE api/v1/tokens/<int:token_id>                              ok    404   404   404   401   401   401
GET    api/v1/teams                                              ok    ok    ok    ok    401   401   401
POST   api/v1/teams                                              no    no    no    no    401   401   401
POST   api/v1/teams/<int:team_id>/members                        ok    no    no    404   401   401   401
DELETE api/v1/teams/<int:team_id>/invitations/<username>         404   no    no    404   401   401   401
POST   api/v1/teams/<int:team_id>/choose                         ok    ok    no    404   401   401   401
GET    api/v1/invitations                                        ok    ok    ok    ok    401   401   401
POST   api/v1/invitations/<int:invitation_id>/<what>             404   404   404   ok    401   401   401
PATCH  api/v1/teams/<int:team_id>/members/<username>             ok    no    no    404   401   401   401
DELETE api/v1/teams/<int:team_id>/members/<username>             ok    no    no    404   401   401   401
PATCH  api/v1/teams/<int:team_id>                                ok    no    no    404   401   401   401
GET    api/v1/teams/<int:team_id>/retention                      ok    ok    ok    404   401   401   401
PUT    api/v1/teams/<int:team_id>/retention                      ok    no    no    404   401   401   401
GET    api/v1/indexes                                            ok    ok    ok    ok    401   401   401
POST   api/v1/indexes                                            no    no    no    no    401   401   401
DELETE api/v1/indexes/<name>                                     no    no    no    no    401   401   401
POST   api/v1/users/<username>/sign-in-link                      no    no    no    404   401   401   401
POST   api/v1/users/<username>/close                             no    no    no    404   401   401   401
GET    api/v1/models                                             ok    ok    ok    ok    401   401   401
GET    api/v1/models/<int:model_id>                              ok    ok    ok    404   401   401   401
PATCH  api/v1/models/<int:model_id>                              ok    ok    no    404   401   401   401
DELETE api/v1/models/<int:model_id>                              ok    ok    no    404   401   401   401
POST   api/v1/models/<int:model_id>/restore                      ok    ok    no    404   401   401   401
GET    api/v1/versions/<int:version_id>                          ok    ok    ok    404   401   401   401
DELETE api/v1/versions/<int:version_id>                          ok    ok    no    404   401   401   401
PATCH  api/v1/versions/<int:version_id>                          ok    ok    no    404   401   401   401
GET    api/v1/versions/<int:version_id>/files/<name>             404   404   no    404   401   401   401
POST   api/v1/versions/<int:version_id>/restore                  ok    ok    no    404   401   401   401
POST   api/v1/uploads                                            ok    ok    no    404   401   401   401
PUT    api/v1/uploads                                            ok    ok    no    404   401   401   401
OPTIONS api/v1/uploads/files                                     ok    ok    ok    ok    ok    ok    ok
POST   api/v1/uploads/files                                      ok    ok    no    404   401   401   401
HEAD   api/v1/uploads/files/<key>                                ok    404   404   404   401   401   401
PATCH  api/v1/uploads/files/<key>                                ok    404   404   404   401   401   401
DELETE api/v1/uploads/files/<key>                                ok    404   404   404   401   401   401
POST   api/v1/uploads/complete                                   404   404   404   404   401   401   401
GET    api/v1/matrix-schema                                      ok    ok    ok    ok    ok    ok    ok
GET    api/v1/matrix-default                                     ok    ok    ok    ok    ok    ok    ok
POST   api/v1/plan                                               ok    ok    ok    404   401   401   401
GET    api/v1/plans/<int:plan_id>                                ok    404   404   404   401   401   401
POST   api/v1/runs                                               ok    ok    no    404   401   401   401
GET    api/v1/runs                                               ok    ok    ok    ok    401   401   401
GET    api/v1/runs/<int:run_id>                                  ok    ok    ok    404   401   401   401
GET    api/v1/runs/<int:run_id>/results                          ok    ok    ok    404   401   401   401
GET    api/v1/runs/<int:run_id>/results.csv                      ok    ok    ok    404   401   401   401
GET    api/v1/runs/<int:run_id>/results.parquet                  422   422   422   404   401   401   401
GET    api/v1/runs/<int:run_id>/cells/<str:cell>/timings.csv     ok    ok    ok    404   401   401   401
POST   api/v1/runs/<int:run_id>/cancel                           ok    ok    no    404   401   401   401
POST   api/v1/runs/<int:run_id>/more                             ok    ok    no    404   401   401   401
GET    api/v1/runs/<int:run_id>/events                           ok    ok    ok    404   401   401   401
GET    api/v1/runs/<int:run_id>/cells/<str:cell>/traces          ok    ok    ok    404   401   401   401
GET    api/v1/runs/<int:run_id>/cells/<str:cell>/compiled        ok    ok    ok    404   401   401   401
GET    api/v1/runs/<int:run_id>/cells/<str:cell>/compiled.onnx   ok    ok    no    404   401   401   401
GET    api/v1/traces/<int:trace_id>.json                         ok    ok    ok    404   401   401   401
GET    api/v1/nodes                                              ok    ok    ok    ok    401   401   401
POST   api/v1/nodes/invitations                                  ok    ok    no    404   401   401   401
GET    api/v1/nodes/<int:node_id>                                ok    ok    ok    404   401   401   401
GET    api/v1/nodes/<int:node_id>/ledger                         ok    no    no    404   401   401   401
PATCH  api/v1/nodes/<int:node_id>                                ok    no    no    404   401   401   401
POST   api/v1/nodes/<int:node_id>/trials                         ok    ok    no    404   401   401   401
GET    api/v1/trials                                             ok    ok    ok    ok    401   401   401
POST   api/v1/trials/<int:trial_id>/<what>                       ok    no    no    404   401   401   401
POST   api/v1/nodes/<int:node_id>/<what>                         ok    no    no    404   401   401   401
GET    api/v1/lendings                                           ok    ok    ok    ok    401   401   401
POST   api/v1/lendings/<int:lending_id>/<what>                   no    no    no    ok    401   401   401
GET    api/v1/variants/<int:variant_id>/files/<name>             404   404   no    404   401   401   401
GET    api/v1/versions/<int:version_id>/compatibility            ok    ok    ok    404   401   401   401
GET    api/v1/models/<int:model_id>/hardware                     ok    ok    ok    404   401   401   401
POST   api/v1/versions/<int:version_id>/evaluation               ok    ok    no    404   401   401   401
POST   api/v1/runs/<int:run_id>/cells/<str:cell>/divergences     ok    ok    no    404   401   401   401
GET    api/v1/runs/<int:run_id>/cells/<str:cell>/divergences     ok    ok    ok    404   401   401   401
GET    api/v1/divergences/<int:divergence_id>                    ok    ok    ok    404   401   401   401
GET    api/v1/divergences/<int:divergence_id>/part.zip           ok    ok    no    404   401   401   401
POST   api/v1/sweeps                                             ok    ok    no    404   401   401   401
POST   api/v1/finds                                              ok    ok    no    404   401   401   401
GET    api/v1/finds/<int:find_id>                                ok    ok    ok    404   401   401   401
POST   api/v1/finds/<int:find_id>/cancel                         ok    ok    no    404   401   401   401
GET    api/v1/runs/<int:run_id>/sweep                            ok    ok    ok    404   401   401   401
GET    api/v1/watches                                            ok    ok    ok    ok    401   401   401
POST   api/v1/watches                                            ok    ok    no    404   401   401   401
GET    api/v1/watches/<int:watch_id>                             ok    ok    ok    404   401   401   401
PATCH  api/v1/watches/<int:watch_id>                             ok    ok    no    404   401   401   401
DELETE api/v1/watches/<int:watch_id>                             ok    ok    no    404   401   401   401
POST   api/v1/watches/<int:watch_id>/call                        ok    ok    no    404   401   401   401
GET    api/v1/watches/<int:watch_id>/rounds                      ok    ok    ok    404   401   401   401
GET    api/v1/watches/<int:watch_id>/points                      ok    ok    ok    404   401   401   401
GET    api/v1/alerts                                             ok    ok    ok    ok    401   401   401
GET    api/v1/alerts/<int:alert_id>                              ok    ok    ok    404   401   401   401
POST   api/v1/alerts/<int:alert_id>/acknowledge                  ok    ok    no    404   401   401   401
POST   api/v1/alerts/<int:alert_id>/assign                       ok    ok    no    404   401   401   401
POST   api/v1/alerts/<int:alert_id>/snooze                       ok    ok    no    404   401   401   401
POST   api/v1/alerts/<int:alert_id>/invalid                      ok    ok    no    404   401   401   401
POST   api/v1/alerts/<int:alert_id>/infra                        ok    ok    no    404   401   401   401
POST   api/v1/alerts/<int:alert_id>/reopen                       409   409   no    404   401   401   401
POST   api/v1/alerts/<int:alert_id>/notes                        ok    ok    no    404   401   401   401
GET    api/v1/alerts/<int:alert_id>/bisections                   ok    ok    ok    404   401   401   401
POST   api/v1/alerts/<int:alert_id>/bisections                   409   409   no    404   401   401   401
POST   api/v1/alerts/<int:alert_id>/work-arounds                 409   409   no    404   401   401   401
GET    api/v1/alerts/<int:alert_id>/report.zip                   409   409   no    404   401   401   401
GET    api/v1/alerts/<int:alert_id>/issue.md                     409   409   409   404   401   401   401
GET    api/v1/investigations/<int:investigation_id>              ok    ok    ok    404   401   401   401
GET    api/v1/releases/<distribution>/<version>                  ok    ok    ok    ok    401   401   401
GET    api/v1/channels                                           ok    ok    ok    ok    401   401   401
POST   api/v1/channels                                           ok    no    no    404   401   401   401
GET    api/v1/channels/<int:channel_id>                          ok    ok    ok    404   401   401   401
PATCH  api/v1/channels/<int:channel_id>                          ok    no    no    404   401   401   401
DELETE api/v1/channels/<int:channel_id>                          ok    no    no    404   401   401   401
POST   api/v1/channels/<int:channel_id>/test                     ok    no    no    404   401   401   401
GET    api/v1/channels/<int:channel_id>/deliveries               ok    ok    ok    404   401   401   401
GET    api/v1/channels/<int:channel_id>/secret                   ok    no    no    404   401   401   401
POST   api/v1/channels/<int:channel_id>/secret                   ok    no    no    404   401   401   401
GET    api/v1/models/<int:model_id>/badge                        ok    ok    ok    404   401   401   401
GET    api/v1/badges/<int:model_id>/<str:key>.svg                ok    ok    ok    ok    ok    ok    ok
GET    api/v1/shares                                             ok    ok    ok    ok    401   401   401
POST   api/v1/shares                                             ok    ok    no    404   401   401   401
DELETE api/v1/shares/<int:share_id>                              ok    no    no    404   401   401   401

# the API of nodes; the two open ones ask for a one-off code or a signature instead of a secret
GET    api/node/v1/openapi.json                                  ok    ok    ok    ok    ok    ok    ok
GET    api/node/v1/                                              404   404   404   404   404   404   404
POST   api/node/v1/enrol                                         no    no    no    no    no    no    no
POST   api/node/v1/secret                                        no    no    no    no    no    no    no
POST   api/node/v1/hello                                         401   401   401   401   401   ok    ok
GET    api/node/v1/standing                                      401   401   401   401   401   ok    ok
POST   api/node/v1/blocks/<block>/claim                          401   401   401   401   401   ok    409
POST   api/node/v1/blocks/<block>/heartbeat                      401   401   401   401   401   ok    409
POST   api/node/v1/blocks/<block>/reports                        401   401   401   401   401   ok    409
PUT    api/node/v1/blocks/<block>/traces/<int:arm>/<int:trace_round>  401 401 401 401  401   ok    409
PUT    api/node/v1/blocks/<block>/compiled/<int:arm>             401   401   401   401   401   422   409
PUT    api/node/v1/blocks/<block>/parts/<int:arm>                401   401   401   401   401   422   409
GET    api/node/v1/files/<sha256>                                401   401   401   401   401   ok    no
GET    api/node/v1/runtimes/<version>                            401   401   401   401   401   ok    ok
GET    api/node/v1/runtime-files/<sha256>                        401   401   401   401   401   404   404
GET    api/node/v1/tab/<name>                                    ok    ok    ok    ok    ok    ok    ok

# for Prometheus: the test asks from the farm's own machine; tests/integration/api/test_metrics.py asks from elsewhere
GET    metrics                                                   ok    ok    ok    ok    ok    ok    ok

# the farm's own program, for machines that join
GET    install/<str:name>                                        ok    ok    ok    ok    ok    ok    ok
GET    install/simple/onnxfarm/                                  ok    ok    ok    ok    ok    ok    ok

# pages
GET    /                                                         ok    ok    ok    ok    sign-in sign-in sign-in
GET    models/                                                   ok    ok    ok    ok    sign-in sign-in sign-in
GET    models/upload/                                            ok    ok    ok    ok    sign-in sign-in sign-in
POST   models/upload/                                            moved moved no    404   sign-in sign-in sign-in
POST   models/<int:model_id>/edit/                               moved moved no    404   sign-in sign-in sign-in
POST   models/<int:model_id>/delete/                             moved moved moved 404   sign-in sign-in sign-in
POST   models/<int:model_id>/restore/                            moved moved moved 404   sign-in sign-in sign-in
POST   models/versions/<int:version_id>/note/                    moved moved moved 404   sign-in sign-in sign-in
POST   models/versions/<int:version_id>/keep/                    moved moved moved 404   sign-in sign-in sign-in
POST   models/versions/<int:version_id>/delete/                  moved moved moved 404   sign-in sign-in sign-in
POST   models/versions/<int:version_id>/restore/                 moved moved moved 404   sign-in sign-in sign-in
GET    models/chosen/                                            ok    ok    ok    ok    sign-in sign-in sign-in
POST   models/chosen/                                            ok    ok    ok    ok    sign-in sign-in sign-in
GET    models/<int:model_id>/                                    ok    ok    ok    404   sign-in sign-in sign-in
GET    models/<int:model_id>/hardware/                           ok    ok    ok    404   sign-in sign-in sign-in
GET    runs/                                                     ok    ok    ok    ok    sign-in sign-in sign-in
GET    runs/new/                                                 ok    ok    ok    404   sign-in sign-in sign-in
POST   runs/new/                                                 moved moved no    404   sign-in sign-in sign-in
POST   runs/plan/                                                ok    ok    ok    ok    sign-in sign-in sign-in
GET    runs/<int:run_id>/                                        ok    ok    ok    404   sign-in sign-in sign-in
POST   runs/<int:run_id>/cancel/                                 moved moved moved 404   sign-in sign-in sign-in
GET    finds/<int:find_id>/                                      ok    ok    ok    404   sign-in sign-in sign-in
POST   finds/<int:find_id>/cancel/                               moved moved moved 404   sign-in sign-in sign-in
POST   models/versions/<int:version_id>/find/                    moved moved moved 404   sign-in sign-in sign-in
POST   runs/<int:run_id>/more/                                   moved moved moved 404   sign-in sign-in sign-in
GET    runs/<int:run_id>/cells/<str:cell_id>/                    ok    ok    ok    404   sign-in sign-in sign-in
GET    fleet/                                                    ok    ok    ok    ok    sign-in sign-in sign-in
POST   fleet/invite/                                             ok    ok    no    ok    sign-in sign-in sign-in
GET    fleet/<int:node_id>/                                      ok    ok    ok    404   sign-in sign-in sign-in
POST   fleet/<int:node_id>/settings/                             moved moved moved 404   sign-in sign-in sign-in
POST   fleet/<int:node_id>/trials/                               moved moved moved 404   sign-in sign-in sign-in
POST   fleet/trials/<int:trial_id>/<str:what>/                   moved moved moved 404   sign-in sign-in sign-in
POST   fleet/<int:node_id>/<str:what>/                           moved moved moved 404   sign-in sign-in sign-in
POST   fleet/lendings/<int:lending_id>/<str:what>/               moved moved moved moved sign-in sign-in sign-in
GET    compare/                                                  ok    ok    ok    ok    sign-in sign-in sign-in
GET    search/                                                   ok    ok    ok    ok    sign-in sign-in sign-in
GET    docs/                                                     ok    ok    ok    ok    sign-in sign-in sign-in
GET    docs/<path:name>                                          ok    ok    ok    ok    sign-in sign-in sign-in
# whoever administers the farm sees more: tests/integration/dashboard/test_setup_page.py
GET    settings/                                                 moved moved moved moved sign-in sign-in sign-in
GET    settings/backup/                                          no    no    no    no    sign-in sign-in sign-in
GET    settings/indexes/                                         no    no    no    no    sign-in sign-in sign-in
POST   settings/indexes/                                         no    no    no    no    sign-in sign-in sign-in
POST   settings/indexes/<str:name>/remove/                       no    no    no    no    sign-in sign-in sign-in
GET    settings/tokens/                                          ok    ok    ok    ok    sign-in sign-in sign-in
POST   settings/tokens/                                          ok    ok    ok    ok    sign-in sign-in sign-in
POST   settings/tokens/<int:token_id>/close/                     moved 404   404   404   sign-in sign-in sign-in
GET    settings/teams/                                           ok    ok    ok    ok    sign-in sign-in sign-in
POST   settings/teams/                                           no    no    no    no    sign-in sign-in sign-in
GET    settings/teams/<int:team_id>/                             ok    ok    ok    404   sign-in sign-in sign-in
POST   settings/teams/<int:team_id>/                             ok    no    no    404   sign-in sign-in sign-in
GET    settings/teams/<int:team_id>/retention/                   ok    ok    ok    404   sign-in sign-in sign-in
POST   settings/teams/<int:team_id>/retention/                   moved moved moved 404   sign-in sign-in sign-in
POST   settings/teams/<int:team_id>/turns/                       moved moved moved 404   sign-in sign-in sign-in
POST   settings/teams/<int:team_id>/invitations/<str:username>/withdraw/ moved moved moved 404   sign-in sign-in sign-in
POST   settings/invitations/<int:invitation_id>/<str:what>/      404   404   404   moved sign-in sign-in sign-in
POST   settings/teams/<int:team_id>/<str:username>/<str:what>/   moved moved moved 404   sign-in sign-in sign-in
GET    sign-in/                                                  moved moved moved moved ok    ok    ok
GET    sign-in/<str:secret>/                                     moved moved moved moved no    no    no
POST   sign-in/<str:secret>/                                     moved moved moved moved no    no    no
# the world has no identity provider: tests/integration/accounts/test_openid.py
POST   sign-in/openid/                                           404   404   404   404   404   404   404
GET    sign-in/openid/back/                                      404   404   404   404   404   404   404
GET    settings/openid/                                          no    no    no    no    sign-in sign-in sign-in
POST   settings/openid/                                          no    no    no    no    sign-in sign-in sign-in
POST   settings/openid/<int:mapping_id>/forget/                  no    no    no    no    sign-in sign-in sign-in
POST   sign-out/                                                 moved moved moved moved moved moved moved
GET    alerts/                                                   ok    ok    ok    ok    sign-in sign-in sign-in
GET    alerts/digest/                                            moved moved moved moved sign-in sign-in sign-in
POST   alerts/acknowledge/                                       moved moved moved moved sign-in sign-in sign-in
GET    alerts/<int:alert_id>/                                    ok    ok    ok    404   sign-in sign-in sign-in
POST   alerts/<int:alert_id>/<str:what>/                         moved moved no    404   sign-in sign-in sign-in
POST   models/versions/<int:version_id>/evaluation/              moved moved moved 404   sign-in sign-in sign-in
GET    models/versions/<int:version_id>/graph/                   ok    ok    ok    404   sign-in sign-in sign-in
GET    models/versions/<int:version_id>/graph/outline/           ok    ok    ok    404   sign-in sign-in sign-in
GET    graph/netron/                                             ok    ok    ok    ok    sign-in sign-in sign-in
GET    graph/netron/operators.json                               ok    ok    ok    ok    sign-in sign-in sign-in
GET    graph/netron/<str:name>                                   ok    ok    ok    ok    ok    ok    ok
GET    variants/<int:variant_id>/                                moved moved moved 404   sign-in sign-in sign-in
POST   variants/<int:variant_id>/report/                         409   409   no    404   sign-in sign-in sign-in
GET    variants/<int:variant_id>/report.json                     404   404   no    404   sign-in sign-in sign-in
GET    runs/<int:run_id>/cells/<str:cell_id>/closer/             moved moved moved moved sign-in sign-in sign-in
GET    runs/<int:run_id>/cells/<str:cell_id>/divergence/         ok    ok    ok    404   sign-in sign-in sign-in
POST   runs/<int:run_id>/cells/<str:cell_id>/divergence/ask/     moved moved moved 404   sign-in sign-in sign-in
GET    watches/                                                  ok    ok    ok    ok    sign-in sign-in sign-in
GET    watches/new/                                              ok    ok    ok    ok    sign-in sign-in sign-in
POST   watches/new/                                              moved moved no    404   sign-in sign-in sign-in
GET    watches/<int:watch_id>/                                   ok    ok    ok    404   sign-in sign-in sign-in
GET    watches/<int:watch_id>/edit/                              ok    ok    ok    404   sign-in sign-in sign-in
POST   watches/<int:watch_id>/edit/                              moved moved no    404   sign-in sign-in sign-in
POST   watches/<int:watch_id>/run/                               moved moved no    404   sign-in sign-in sign-in
POST   watches/<int:watch_id>/<str:what>/                        moved moved no    404   sign-in sign-in sign-in
GET    trends/                                                   ok    ok    ok    ok    sign-in sign-in sign-in
GET    runtimes/                                                 moved moved moved moved sign-in sign-in sign-in
GET    fleet/runtimes/                                           ok    ok    ok    ok    sign-in sign-in sign-in
GET    releases/<str:distribution>/<str:version>/                ok    ok    ok    ok    sign-in sign-in sign-in
GET    settings/channels/                                        ok    ok    ok    ok    sign-in sign-in sign-in
POST   settings/channels/                                        moved no    no    404   sign-in sign-in sign-in
GET    settings/channels/<int:channel_id>/                       ok    ok    ok    404   sign-in sign-in sign-in
POST   settings/channels/<int:channel_id>/<str:what>/            moved no    no    404   sign-in sign-in sign-in
GET    settings/shares/                                          ok    ok    ok    ok    sign-in sign-in sign-in
POST   settings/shares/                                          ok    ok    no    404   sign-in sign-in sign-in
POST   settings/shares/<int:share_id>/close/                     moved moved moved 404   sign-in sign-in sign-in
GET    settings/audit/                                           ok    ok    ok    ok    sign-in sign-in sign-in
# whoever has the link; another secret: test_shares.py
GET    shared/<str:secret>/                                      ok    ok    ok    ok    ok    ok    ok
GET    shared/<str:secret>/card.png                              ok    ok    ok    ok    ok    ok    ok
GET    shared/<str:secret>/card.svg                              ok    ok    ok    ok    ok    ok    ok
"""


class Line(NamedTuple):
    """One address and method, and what each who asks gets."""

    method: str
    route: str
    expected: dict[str, str]


def lines() -> list[Line]:
    """The table, read."""
    rows = [line.split() for line in TABLE.splitlines() if line and not line.startswith("#")]
    return [
        Line(method, route.removeprefix("/"), dict(zip(COLUMNS, cells, strict=True))) for method, route, *cells in rows
    ]
