"""The wall clock of the farm's processes, which a fault may move while the monotonic ones go on."""

import mmap
import shutil
import struct
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("clock.c")


class NoClockError(RuntimeError):
    """The clock cannot be moved here; the text says why and what to do."""


class Clock:
    """A file that says by how many seconds the clock is off, and the library that reads it."""

    def __init__(self, folder: Path) -> None:
        """Raises NoClockError without a C compiler."""
        compiler = shutil.which("cc")
        if compiler is None:
            raise NoClockError("The clock cannot be moved: there is no C compiler (cc); leave the fault clock out.")
        folder.mkdir(parents=True)
        folder.chmod(0o755)
        library, self._path = folder / "clock.so", folder / "seconds"
        subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", str(library), str(SOURCE)], check=True)
        library.chmod(0o755)
        self._path.write_bytes(struct.pack("q", 0))
        self._path.chmod(0o644)
        self.environment = {"LD_PRELOAD": str(library), "CHAOS_CLOCK": str(self._path)}

    def move(self, seconds: int) -> None:
        """From now on the processes' wall clock is off by so much."""
        with self._path.open("r+b") as file, mmap.mmap(file.fileno(), 8) as page:
            page[:] = struct.pack("q", seconds)
