"""How an editor checks what a matrix writes as a scenario: its text, or one name with its options. Pure."""

from collections.abc import Mapping

from farm.rules.cells import scenarios

SCHEMA: Mapping[str, object] = {
    "anyOf": [
        {"type": "string", "pattern": rf"^({'|'.join(scenarios.NAMES)})(:.*)?$"},
        {
            "type": "object",
            "minProperties": 1,
            "maxProperties": 1,
            "additionalProperties": False,
            "properties": {
                "single": {"type": ["object", "null"]},
                "fresh": {"type": ["object", "null"]},
                "load": {"type": "object"},
                "sustained": {"type": "number", "minimum": scenarios.LEAST_MINUTES, "maximum": scenarios.MOST_MINUTES},
                "generate": {"type": ["object", "null"]},
                **{name: {"type": ["object", "null"]} for name in scenarios.OUTSIDE.entries},
            },
        },
    ]
}
