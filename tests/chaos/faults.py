"""The faults, each with its undoing. All are drawn from one seed."""

import random
import signal
import sqlite3
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from tests.chaos.farm import LEASE_S, ChaosFarm

Fault = Callable[[ChaosFarm, random.Random], str]
SHORT_S = (0.3, 1.5)
# longer than a lease and its suspicion: the farm gives the block to somebody else
LONG_S = (LEASE_S, 3 * LEASE_S)


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


def flush(farm: ChaosFarm, dice: random.Random) -> str:
    """FLUSHALL: the broker forgets every message."""
    from farm.runs import broker

    broker._client(broker.redis_url()).flushall()
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
    """The broker is gone for several leases."""
    part, seconds = farm.parts["broker"], dice.uniform(*LONG_S)
    part.kill()
    time.sleep(seconds)
    part.start()
    return f"{seconds:.1f} s"


def db_away(farm: ChaosFarm, dice: random.Random) -> str:
    """Nobody can write to the database for several leases: its write lock is held from outside."""
    from django.db import connection, transaction

    seconds = dice.uniform(*LONG_S)
    if connection.vendor == "sqlite":
        held = sqlite3.connect(str(connection.settings_dict["NAME"]), timeout=30, isolation_level=None)
        held.execute("BEGIN EXCLUSIVE")
        time.sleep(seconds)
        held.execute("ROLLBACK")
        held.close()
        return f"{seconds:.1f} s"
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("LOCK TABLE runs_block, runs_attempt, runs_report, runs_run IN ACCESS EXCLUSIVE MODE")
        time.sleep(seconds)
    return f"{seconds:.1f} s"


def disk_full(farm: ChaosFarm, dice: random.Random) -> str:
    """An agent cannot write to its folder: its spool is made unwritable, as a full disk would."""
    name = dice.choice([name for name in sorted(farm.parts) if name.startswith("agent")])
    spool = Path(farm.folder / name / "spool")
    if not spool.is_dir():
        return f"{name} has no spool yet"
    away = spool.with_name("spool-away")
    spool.rename(away)
    spool.touch()  # a file where the folder was: every write fails, whoever runs it
    time.sleep(dice.uniform(1.0, 3.0))
    spool.unlink()
    away.rename(spool)
    return name


def clock(farm: ChaosFarm, dice: random.Random) -> str:
    """The database's clock jumps an hour: every lease ends an hour earlier or later than it did."""
    from django.db.models import F

    from farm.runs.models import Block

    hours = dice.choice((-1, 1))
    moved = Block.objects.filter(state="leased").update(lease_expires_at=F("lease_expires_at") - timedelta(hours=hours))
    return f"{hours:+d} h under {moved} leases"


FAULTS: dict[str, Fault] = {
    "kill": kill,
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


def _misbehave(farm: ChaosFarm, mode: str, seconds: float) -> str:
    farm.proxy.mode = mode
    time.sleep(seconds)
    farm.proxy.mode = ""
    return f"{seconds:.1f} s"
