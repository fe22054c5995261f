"""How a confined child ended, as fields for programs and as one sentence for people."""

import json
import signal as signals
from dataclasses import dataclass
from typing import Literal

from farm.contract.texts import replace_controls_in_json

Kind = Literal["done", "exited", "crashed", "timeout", "flooded", "out_of_memory", "cancelled"]


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How one child ended, and what it wrote.

    The kind is `done` for exit code 0, `exited` for any other, `crashed` for a signal, `timeout`, `flooded` and
    `out_of_memory` for a limit, and `cancelled` for a child that this process killed.
    """

    kind: Kind
    exit_code: int | None = None
    signal: int | None = None
    # the bytes that it wrote to its private pipe
    reply: bytes = b""
    # the last 16 KiB that it printed
    stdout_tail: str = ""
    stderr_tail: str = ""
    # which limit ended it, in words, for `timeout`, `flooded` and `out_of_memory`
    limit: str = ""
    wall_s: float = 0.0
    cpu_s: float = 0.0
    # the highest resident size that was seen; None where it could not be measured
    peak_memory_bytes: int | None = None

    @property
    def is_done(self) -> bool:
        return self.kind == "done"

    def parse_reply(self) -> object:
        """Parse the reply as JSON, with control characters in its texts replaced by U+FFFD.

        Raises ValueError where the reply is empty, is not JSON or is nested too deeply.
        """
        try:
            parsed: object = json.loads(replace_controls_in_json(self.reply))
            return parsed
        except RecursionError as error:
            raise ValueError("the reply is nested too deep") from error

    def describe(self) -> str:
        """Say in one sentence how and after how many seconds the child ended.

        The sentence names the limit that ended it. For an exit code or a signal it quotes the last line of stderr, up
        to 300 characters.
        """
        after = f"after {self.wall_s:.1f} s"
        words = {
            "done": f"It ended normally {after}.",
            "exited": f"It ended with exit code {self.exit_code} {after}{self._last_words()}.",
            "crashed": f"It crashed with {format_signal(self.signal)} {after}{self._last_words()}.",
            "timeout": f"It was ended {after}: {self.limit}.",
            "flooded": f"It was ended {after}: {self.limit}.",
            "out_of_memory": f"It ran out of memory {after}: {self.limit}.",
            "cancelled": f"It was cancelled {after}.",
        }
        return words[self.kind]

    def _last_words(self) -> str:
        lines = [line.strip() for line in self.stderr_tail.splitlines() if line.strip()]
        if not lines:
            return ""
        # the sentence is shown on terminals too, where control characters would be obeyed
        words = "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in lines[-1][:300])
        return f", saying “{words}”"


def format_signal(number: int | None) -> str:
    """Format a signal such as `SIGSEGV (signal 11)`, or `signal 99` where the number has no name.

    None becomes "an unknown signal".
    """
    if number is None:
        return "an unknown signal"
    try:
        return f"{signals.Signals(number).name} (signal {number})"
    except ValueError:
        return f"signal {number}"
