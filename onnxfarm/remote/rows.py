"""What a farm's API answers, as far as this client reads it; its document at /api/v1/docs names every field."""

from typing import NotRequired, TypedDict


class Progress(TypedDict, total=False):
    """How far a run is: cells that have ended, the share of its work, the busy block in words."""

    cells_done: int
    cells_planned: int
    share: float
    block: str
    waiting: str
    minutes_left: float | None


class Run(TypedDict):
    id: int
    url: str
    state: str
    outcome: str
    sentence: str
    model: str
    created_at: str
    progress: Progress


class Evaluation(TypedDict):
    state: str
    problem: str | None


class Calibration(TypedDict):
    samples: int | None
    problem: str | None


class Version(TypedDict):
    """A version of a model. `state`: pending, inspecting, ready or rejected."""

    id: int
    model: str
    number: int
    team: str
    state: str
    problem: str | None
    evaluation: Evaluation | None
    calibration: Calibration | None


class Model(TypedDict):
    id: int
    name: str
    team: str
    version_count: int
    created_at: str
    labels: list[str]


class ModelPage(Model):
    """A model with its versions, newest first."""

    versions: list[Version]
    removed_versions: list[Version]


class Removed(TypedDict):
    """What a deletion came to: `hidden` versions stay for the runs that measured them."""

    freed_bytes: int
    deleted: int
    hidden: int


class Hit(TypedDict):
    """Something that a search found."""

    kind: str
    name: str
    about: str
    url: str


class Reason(TypedDict):
    text: str


class Point(TypedDict, total=False):
    """A point of a matrix that a plan refuses."""

    id: str
    labels: dict[str, str]
    reason: Reason


class Arm(TypedDict):
    id: str


class Comparison(TypedDict, total=False):
    smallest_detectable: float | None


class Wish(TypedDict):
    text: str


class Block(TypedDict, total=False):
    """A block of a plan; rounds and minutes are absent where nothing is known of them."""

    id: str
    arms: list[Arm]
    min_rounds: int
    max_rounds: int
    minutes: float
    nodes: list[str]
    comparisons: list[Comparison]
    wish: Wish | None


class Plan(TypedDict, total=False):
    cells: int
    blocks: list[Block]
    refused: list[Point]
    minutes: float
    problem: str | None


class OpenPlan(TypedDict):
    """A plan of many points that is not made yet."""

    id: int
    state: str
    points: int


class SelfTest(TypedDict):
    sentence: str


class Limits(TypedDict):
    """What a node's owner set."""

    is_paused: bool
    hours: str
    timezone: str
    max_block_s: float
    max_temperature_c: float | None
    cache_bytes: int
    runtimes_bytes: int


class Node(TypedDict):
    id: int
    name: str
    state: str
    health: str
    tags: dict[str, str]
    owner_tags: list[str]
    pause: str
    settings: Limits
    fingerprint: str
    self_test: SelfTest | None


class Invitation(TypedDict):
    """`install` and `warning` are not there on farms of before 22 November 2026, nor is `team` before the 25th."""

    command: str
    team: NotRequired[str]
    install: NotRequired[str]
    warning: NotRequired[str]
    expires_at: str


class Lending(TypedDict):
    """A node that was offered to a team."""

    id: int
    node: str
    node_id: int
    owner: str | None
    from_team: str
    team: str
    sandbox: str
    fingerprint: str
    sentence: str


class Named(TypedDict):
    id: int
    name: str


class Member(TypedDict):
    username: str
    role: str
    is_open: bool
    last_seen_at: str | None


class Invited(TypedDict):
    """`sign_in_link`: where they are new. `has_to_accept`: where they have an account; farms of before put them in."""

    username: str
    role: str
    sign_in_link: str | None
    has_to_accept: NotRequired[bool]


class Waiting(TypedDict):
    """Somebody who has not answered an invitation yet."""

    username: str
    role: str


class TeamInvitation(TypedDict):
    """An invitation of the user's."""

    id: int
    team: str
    role: str
    by: str
    expires_at: str


class Link(TypedDict):
    sign_in_link: str


class Team(TypedDict):
    """A team with its people; `me` tells of one's teams by name alone. Farms of before say nothing of invitations."""

    id: int
    name: str
    may_manage: bool
    is_default: NotRequired[bool]
    members: list[Member]
    invited: NotRequired[list[Waiting]]


class Doomed(TypedDict):
    """One kind that a team's retention removes next."""

    kind: str
    days: int
    count: int
    bytes: int


class Retention(TypedDict):
    """What a team keeps, and what goes next."""

    timings_days: int | None
    traces_days: int | None
    models_days: int | None
    acts_at: str | None
    acted_at: str | None
    doomed: list[Doomed]


class Token(TypedDict):
    id: int
    hint: str
    name: str
    scopes: list[str]
    expires_at: str
    last_used_at: str | None
    revoked_at: str | None


class NewToken(Token):
    secret: str


class Me(TypedDict):
    username: str
    teams: list[Named]


class Watch(TypedDict):
    id: int
    url: str
    name: str
    team: str
    is_active: bool
    models: list[Named]
    label: str
    reference: str
    on_release: bool
    on_version: bool
    schedule: str
    problem: str


class Round(TypedDict):
    """One measurement of a watch: `old` against `new`."""

    id: int
    model: str
    version: int
    old: str
    new: str
    state: str
    outcome: str
    sentence: str
    run: int | None
    confirming: int | None


class Symptom(TypedDict):
    kind: str
    text: str
    explanation: str


class Investigation(TypedDict):
    id: int
    kind: str
    state: str
    sentence: str


class Event(TypedDict):
    at: str
    kind: str
    text: str


class Alert(TypedDict):
    id: int
    url: str
    state: str
    is_snoozed: bool
    sentence: str
    release: str
    model: str
    node: str
    symptoms: list[Symptom]


class AlertPage(Alert):
    """One alert with what was looked into and its log."""

    investigations: list[Investigation]
    events: list[Event]
