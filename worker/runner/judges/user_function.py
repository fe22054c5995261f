"""A user's own function on the outputs of all samples: it runs here, within the walls, and is never sent to a farm."""

import signal
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

from worker.runner import faults
from worker.runner.judges.judge import Array

# of a traceback, those of the user's file
MAX_FRAMES = 3


@dataclass(frozen=True)
class Source:
    """The file as it lies here, what its user calls it, and the function in it."""

    path: str
    name: str
    function: str

    def judged(
        self, outputs: dict[str, Array], data: dict[str, Array], *, count: int, limit_s: float
    ) -> tuple[Array | float, bool]:
        """What the function gives, a figure a sample or one of all, and whether less of it is better.

        Raises Refusal with the user's own lines where it fails, takes longer or gives something else.
        """
        with self._within(limit_s), self._refusing():
            function = self._function()
            given = np.asarray(function(outputs, data))
        lower_is_better = bool(getattr(function, "lower_is_better", False))
        if given.dtype.kind not in "fiub" or given.shape not in ((), (count,)):
            what = f"{given.dtype} of shape {list(given.shape)}"
            raise self._refused(f"gave {what}: return one float, or one of each of the {count} samples")
        if not np.isfinite(given).all() or np.abs(given).max() > np.finfo(np.float32).max:
            raise self._refused("gave a value that is no finite number: leave such samples out of the data")
        return (float(given) if given.shape == () else given), lower_is_better

    def _function(self) -> Callable[[dict[str, Array], dict[str, Array]], Any]:
        names: dict[str, Any] = {"__name__": Path(self.name).stem, "__file__": self.path}
        code: CodeType = compile(Path(self.path).read_bytes(), self.name, "exec")
        exec(code, names)
        found: Callable[..., Any] | None = names.get(self.function)
        if not callable(found):
            known = ", ".join(name for name, value in names.items() if callable(value)) or "none"
            raise self._refused(f"is not a function there; functions: {known[:200]}")
        return found

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except faults.Refusal:
            raise
        except BaseException as error:  # of whatever somebody wrote, SystemExit too
            if isinstance(error, MemoryError):
                raise
            raise self._refused(f"failed: {self._trace(error)}") from error

    def _trace(self, error: BaseException) -> str:
        """The error and where in the user's own file it came from."""
        lines = Path(self.path).read_text("utf-8", "replace").splitlines()
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == self.name]
        places = [
            f"line {frame.lineno}, in {frame.name}: {lines[(frame.lineno or 1) - 1].strip()}"
            for frame in frames[-MAX_FRAMES:]
        ]
        message = "".join(traceback.format_exception_only(error)[-1:]).strip()
        if isinstance(error, SyntaxError):
            places = [f"line {error.lineno}"]
        if isinstance(error, ImportError):
            message += " (of packages numpy alone is there)"
        return "; ".join([f"{message[:600]}", *places])

    @contextmanager
    def _within(self, limit_s: float) -> Iterator[None]:
        late = self._refused(f"was not done after {limit_s:.1f} s: give fewer samples", code="timeout")
        began = time.monotonic()

        def stop(number: int, frame: FrameType | None) -> None:
            raise late

        before = signal.signal(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, limit_s)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        if time.monotonic() - began >= limit_s:
            # it caught what stopped it, or was in a call that cannot be stopped
            raise late

    def _refused(self, what: str, *, code: str = "inference_failed") -> faults.Refusal:
        return faults.Refusal(code, f"{self.function} of {self.name} {what}"[:1900])
