from farm.fleet.selectors.nodes import (
    can_manage_node,
    events_of,
    lending,
    lendings_to,
    lendings_visible_to,
    name_of,
    node,
    node_by_key,
    node_of_secret,
    nodes_listed,
    nodes_visible_to,
    offer_of,
    offers,
    runtimes_offered,
    trial,
    trials_asked_of,
    trials_visible_to,
)
from farm.fleet.selectors.noise import (
    false_alarms,
    noise_floor,
    of_fleet,
)
