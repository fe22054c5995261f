"""The faults, each with its undoing. All are drawn from one seed."""

import random
import signal
import sqlite3
import time
from collections.abc import Callable

from redis.exceptions import RedisError

from tests.chaos import namespace
from tests.chaos.farm import LEASE_S, ChaosFarm, patiently

Fault = Callable[[ChaosFarm, random.Random], str]
SHORT_S = (0.3, 1.5)
# longer than a lease and its suspicion: the farm gives the block to somebody else
LONG_S = (LEASE_S, 3 * LEASE_S)
HOUR_S = 3600


def kill(farm: ChaosFarm, dice: random.Random) -> str:
    """kill -9 of any process; it is started again a little later."""
    part = farm.parts[dice.choice(sorted(farm.parts))]
    part.kill()
    time.sleep(dice.uniform(*SHORT_S))
    part.start()
    return part.name


def stop(farm: ChaosFarm, dice: random.Random) -> str:
    """SIGSTOP of any process for longer than a lease; then it goes on as if nothing had been."""
    part = farm.parts[dice.choice(sorted(farm.parts))]
    seconds = dice.uniform(*LONG_S)
    part.signal(signal.SIGSTOP)
    time.sleep(seconds)
    part.signal(signal.SIGCONT)
    return f"{part.name} for {seconds:.1f} s"


def settle(farm: ChaosFarm, dice: random.Random) -> str:
    """kill -9 of gateway and workers between a block's last report and its settling; all messages are lost too."""
    from farm.runs.models import Block
    from farm.runs.states import BlockState

    def reported() -> int:
        return Block.objects.filter(state=BlockState.REPORTED).count()

    gateway, *workers = parts = [farm.parts[name] for name in ("gateway", "prepare", "ticks")]
    for worker in workers:
        worker.signal(signal.SIGSTOP)
    limit = time.monotonic() + 3 * LONG_S[1]
    while not patiently(reported) and time.monotonic() < limit:
        time.sleep(0.1)
    gateway.kill()
    found = patiently(reported)
    for worker in workers:
        worker.kill()
    flush(farm, dice)
    time.sleep(dice.uniform(*SHORT_S))
    for part in parts:
        part.start()
    return f"{found} reported"


def flush(farm: ChaosFarm, dice: random.Random) -> str:
    """FLUSHALL: the broker forgets every message."""
    from farm.runs import broker

    try:
        broker._client(broker.redis_url()).flushall()
    except RedisError as problem:
        return f"nothing: {problem}"
    return "everything"


def drop(farm: ChaosFarm, dice: random.Random) -> str:
    """Requests are carried out and their answers get lost."""
    return _misbehave(farm, "drop", dice.uniform(1.0, 3.0))


def double(farm: ChaosFarm, dice: random.Random) -> str:
    """Every request arrives twice."""
    return _misbehave(farm, "double", dice.uniform(1.0, 4.0))


def hold(farm: ChaosFarm, dice: random.Random) -> str:
    """Connections are open and nothing moves on them."""
    return _misbehave(farm, "hold", dice.uniform(*LONG_S))


def redis_away(farm: ChaosFarm, dice: random.Random) -> str:
    """The broker is gone for a lease or several."""
    return _away(farm, "broker", dice.uniform(*LONG_S))


def db_away(farm: ChaosFarm, dice: random.Random) -> str:
    """The database is gone for a lease or several: PostgreSQL is killed, SQLite's lock is held from outside."""
    seconds = dice.uniform(*LONG_S)
    if farm.cluster:
        return _away(farm, "database", seconds)
    held = sqlite3.connect(farm.home / "db.sqlite3", timeout=30, isolation_level=None)
    held.execute("BEGIN EXCLUSIVE")
    time.sleep(seconds)
    held.execute("ROLLBACK")
    held.close()
    return f"{seconds:.1f} s"


def disk_full(farm: ChaosFarm, dice: random.Random) -> str:
    """No byte is left on an agent's disk, or on the one with the farm's database."""
    agents = [name for name in sorted(farm.parts) if name.startswith("agent")]
    name = dice.choice([*agents, "the farm"])
    seconds = dice.uniform(*LONG_S)
    ballast = namespace.fill(farm.folder / name if name in agents else farm.disk)
    time.sleep(seconds)
    ballast.unlink(missing_ok=True)
    return f"{name} for {seconds:.1f} s"


def clock(farm: ChaosFarm, dice: random.Random) -> str:
    """The wall clock of broker, gateway, tick and PostgreSQL jumps an hour, and later back again."""
    hours, seconds = dice.choice((-1, 1)), dice.uniform(*LONG_S)
    farm.clock.move(hours * HOUR_S)
    time.sleep(seconds)
    farm.clock.move(0)
    return f"{hours:+d} h for {seconds:.1f} s"


FAULTS: dict[str, Fault] = {
    "kill": kill,
    "settle": settle,
    "flush": flush,
    "stop": stop,
    "drop": drop,
    "double": double,
    "hold": hold,
    "redis-away": redis_away,
    "db-away": db_away,
    "disk-full": disk_full,
    "clock": clock,
}


def _away(farm: ChaosFarm, name: str, seconds: float) -> str:
    part = farm.parts[name]
    part.kill()
    time.sleep(seconds)
    part.start()
    return f"{seconds:.1f} s"


def _misbehave(farm: ChaosFarm, mode: str, seconds: float) -> str:
    farm.proxy.mode = mode
    time.sleep(seconds)
    farm.proxy.mode = ""
    return f"{seconds:.1f} s"
