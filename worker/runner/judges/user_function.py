"""Judges by a user's own function on the outputs of all samples; it runs confined here and is never sent to a farm."""

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

# how many frames of the user's file a message names, the innermost ones
MAX_FRAMES = 3


@dataclass(frozen=True)
class UserJudge:
    """A function in a user's file. `path` is the file's path here, and `name` its name for the user."""

    path: str
    name: str
    function: str

    def judge(
        self, outputs: dict[str, Array], data: dict[str, Array], *, count: int, limit_s: float
    ) -> tuple[Array | float, bool]:
        """Call the function with all outputs and data. Return its figures, and whether lower is better.

        The figures are an array with one for each of the `count` samples, or a single number for all of them. Raises
        Refusal, with the lines of the user's file, where the function fails, takes longer than `limit_s`, or returns
        anything else, and MemoryError. Only the main thread may call this, because the limit is kept by a signal.
        """
        with self._limit_time(limit_s), self._explain_failures():
            function = self._load_function()
            figures = np.asarray(function(outputs, data))
        lower_is_better = bool(getattr(function, "lower_is_better", False))
        if figures.dtype.kind not in "fiub" or figures.shape not in ((), (count,)):
            got = f"{figures.dtype} of shape {list(figures.shape)}"
            raise self._make_refusal(f"gave {got}: return one float, or one of each of the {count} samples")
        if not np.isfinite(figures).all() or np.abs(figures).max() > np.finfo(np.float32).max:
            raise self._make_refusal("gave a value that is no finite number: leave such samples out of the data")
        return (float(figures) if figures.shape == () else figures), lower_is_better

    def _load_function(self) -> Callable[[dict[str, Array], dict[str, Array]], Any]:
        names: dict[str, Any] = {"__name__": Path(self.name).stem, "__file__": self.path}
        code: CodeType = compile(Path(self.path).read_bytes(), self.name, "exec")
        exec(code, names)
        function: Callable[..., Any] | None = names.get(self.function)
        if not callable(function):
            callables = ", ".join(name for name, value in names.items() if callable(value)) or "none"
            raise self._make_refusal(f"is not a function there; functions: {callables[:200]}")
        return function

    @contextmanager
    def _explain_failures(self) -> Iterator[None]:
        try:
            yield
        except faults.Refusal:
            raise
        except BaseException as error:  # a user's code may raise anything, also SystemExit
            if isinstance(error, MemoryError):
                raise
            raise self._make_refusal(f"failed: {self._describe_error(error)}") from error

    def _describe_error(self, error: BaseException) -> str:
        """Describe the error, with the lines of the user's own file where it came from."""
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
    def _limit_time(self, limit_s: float) -> Iterator[None]:
        timeout = self._make_refusal(f"was not done after {limit_s:.1f} s: give fewer samples", code="timeout")
        began = time.monotonic()

        def stop(number: int, frame: FrameType | None) -> None:
            raise timeout

        before = signal.signal(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, limit_s)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        if time.monotonic() - began >= limit_s:
            # the function caught the exception, or was in a call that a signal does not interrupt
            raise timeout

    def _make_refusal(self, failure: str, *, code: str = "inference_failed") -> faults.Refusal:
        return faults.Refusal(code, f"{self.function} of {self.name} {failure}"[:1900])
