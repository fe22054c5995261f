"""Alerts are told exactly once while processes of the farm are killed at random around it. By hand, in some minutes:

    python -m tests.acceptance.long_exactly_once --folder FOLDER [--seed 1]      after `long_watch wheels`

Every model is watched from a release that runs it to an older one that loads it but has no kernel for it, so that each
round is an alert which needs no quiet machine (an opset too new for the older release would be no alert); such an alert
is told of once, as it opens, since nobody asks since when. From the call on, one of web, gateway, broker, prepare,
ticks and, less often, the node is killed every few seconds and started again, until every message has been sent. A
receiver may see a message twice when its sender was killed before it could note the answer: it is known by its id, and
dropped.
"""

import argparse
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import httpx2
from onnx import TensorProto, helper

from tests.acceptance import watched_farm
from tests.acceptance.watched_farm import NotYetError, Scene
from tests.bench import figure

# models that differ in their producer: other bytes, another digest
NAMES = tuple(f"add_int16_{number}" for number in range(8))
# the processor's Add of int16 has a kernel in the one and none in the other
RUNS_IT, DOES_NOT = "1.31.1", "1.17.0"
# two threads: a sample of one is measured again and again while others keep the cores busy, and nothing rests on speed
MATRIX = {"matrix": {"precision": ["fp32"], "threads": [2]}}
PAUSE_S = (4.0, 9.0)
AWAY_S = (0.2, 1.5)
VICTIMS = ("web", "gateway", "broker", "prepare", "ticks", "web", "gateway", "broker", "ticks", "node")
PATIENCE_S = 180.0
# what a receiver takes before it answers: kills fall in between
ANSWER_S = 0.5
AGAIN = 75

T = TypeVar("T")


class Killer(threading.Thread):
    """Kills and starts again until it is told to end."""

    def __init__(self, scene: Scene, *, seed: int) -> None:
        super().__init__(daemon=True)
        self._scene, self._dice = scene, random.Random(seed)
        self._ended = threading.Event()
        self.kills: dict[str, int] = {}

    def run(self) -> None:
        while not self._ended.wait(self._dice.uniform(*PAUSE_S)):
            self._strike(self._dice.choice(VICTIMS))

    def end(self) -> None:
        """No more kills; whatever was killed runs again."""
        self._ended.set()
        self.join()

    def _strike(self, name: str) -> None:
        processes = self._scene.farm.processes
        started = [one for one in processes.supervisor._started if one.name == name][-1]
        os.killpg(started.handle.pid, signal.SIGKILL)
        started.handle.wait()
        self.kills[name] = self.kills.get(name, 0) + 1
        time.sleep(self._dice.uniform(*AWAY_S))
        if name == "node":
            home = self._scene.farm.plan.node_home
            assert home is not None
            processes.start_node(home)
        else:
            getattr(processes, f"start_{name}")()


def patiently(ask: Callable[[], T]) -> T:
    """Asks the farm again while its web is away or cannot reach its database."""
    limit = time.monotonic() + PATIENCE_S
    while True:
        try:
            return ask()
        except (httpx2.HTTPError, AssertionError):
            if time.monotonic() > limit:
                raise
            time.sleep(0.3)


def models(folder: Path) -> list[Path]:
    """The models' files, all of different bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    for name in NAMES:
        nodes = [
            helper.make_node("Cast", ["x"], ["as_int16"], to=TensorProto.INT16),
            helper.make_node("Add", ["as_int16", "as_int16"], ["sum"]),
            helper.make_node("Cast", ["sum"], ["y"], to=TensorProto.FLOAT),
        ]
        ports = [helper.make_tensor_value_info(port, TensorProto.FLOAT, ["batch", 16]) for port in "xy"]
        graph = helper.make_graph(nodes, name, ports[:1], ports[1:])
        opset = [helper.make_opsetid("", 18)]
        model = helper.make_model(graph, opset_imports=opset, ir_version=8, producer_name=name)
        path = folder / f"{name}.onnx"
        path.write_bytes(model.SerializeToString(deterministic=True))
        found.append(path)
    return found


def call_all(scene: Scene) -> list[int]:
    """A watch and a called round for each model; the watches' numbers."""
    channels = scene.channels()
    found = []
    for path in models(scene.folder / "models"):
        model = name = scene.model(path)
        how = {"models": [model], "reference": RUNS_IT, "matrix": MATRIX, "on_release": False}
        watch = scene.watch(name, **how)
        if not scene.get(f"/watches/{watch}/rounds"):
            scene.post(f"/watches/{watch}/call", candidate=DOES_NOT)
        found.append(watch)
    scene.say(f"{len(found)} watches called, told to channels {channels}")
    return found


def told(scene: Scene, watches: list[int]) -> list[Any] | None:
    """Every alert with its log, once each watch has an open one and none waits for the farm itself; None before."""
    found, is_over = [], True
    for node in patiently(lambda: scene.get("/nodes")):
        # put aside after it was killed three times in a row: its owner lets it work again
        if node["health"] == "quarantined":
            patiently(lambda node=node: scene.post(f"/nodes/{node['id']}/resume"))
    for watch in watches:
        alerts = patiently(lambda watch=watch: scene.get(f"/alerts?list=all&watch={watch}"))
        states = {one["state"] for one in alerts}
        if "infra" in states:
            call_again(scene, watch)
        is_over = is_over and "open" in states and "infra" not in states
        found += [patiently(lambda one=one: scene.get(f"/alerts/{one['id']}")) for one in alerts]
    return found if is_over else None


def call_again(scene: Scene, watch: int) -> None:
    """What a person does whose node was killed three times with a block: the alert says so, and asks for it."""
    rounds = patiently(lambda: scene.get(f"/watches/{watch}/rounds"))
    if all(one["state"] == "judged" for one in rounds):
        patiently(lambda: scene.post(f"/watches/{watch}/call", candidate=DOES_NOT))


def all_sent(scene: Scene) -> list[Any] | None:
    """Every message of both channels, once all have been sent."""
    rows = [
        {**one, "channel": number}
        for number in scene.kept["channels"]
        for one in patiently(lambda number=number: scene.get(f"/channels/{number}/deliveries"))
    ]
    return rows if rows and all(one["state"] in ("sent", "failed") for one in rows) else None


def audit(scene: Scene, alerts: list[Any], rows: list[Any]) -> dict[str, Any]:
    """Counts of what was told and received; raises AssertionError for anything lost, doubled or failed."""
    hook, mail = scene.kept["channels"]
    told_of = [[event for event in one["events"] if event["kind"] != "seen_again"] for one in alerts]
    events = [event for one in told_of for event in one]
    kinds = [[event["kind"] for event in sorted(one, key=lambda event: event["id"])] for one in told_of]
    assert kinds.count(["opened"]) == len(NAMES), kinds
    # a block that its node was killed with three times is told of as the farm's own trouble, and so is its end
    others = [one for one in kinds if one != ["opened"]]
    assert all(one == ["infra", "resolved"] * (len(one) // 2) for one in others), kinds
    assert [one for one in rows if one["state"] != "sent"] == []
    by_channel = {number: [one for one in rows if one["channel"] == number] for number in (hook, mail)}
    assert {len(sent) for sent in by_channel.values()} == {len(events)}
    hooks, mails = scene.kept["hooks"], scene.kept["mails"]
    events_of: dict[str, set[int]] = {}
    for one in hooks:
        events_of.setdefault(one["id"], set()).add(one["data"]["event"])
    # each id tells of one event, and each event has one id
    received = sorted(number for of in events_of.values() for number in of)
    assert received == sorted(event["id"] for event in events), (received, events, events_of)
    mail_ids = {one["id"] for one in mails}
    assert len(mail_ids) == len(events)
    return {
        "alerts": kinds.count(["opened"]),
        "troubles of the farm itself": len(others),
        "told": len(events),
        "webhooks": {"received": len(hooks), "by id": len(events_of)},
        "mails": {"received": len(mails), "by id": len(mail_ids)},
        "tries": sum(one.get("tries", 0) for one in rows),
    }


def torture(scene: Scene, *, seed: int) -> dict[str, Any]:
    """From the calls to the last message, under kills; what came of it."""
    scene.receiver.pause_s = ANSWER_S
    watches = call_all(scene)
    scene.must_stay_up = False
    killer = Killer(scene, seed=seed + scene.kept["calls"])
    killer.start()
    try:
        alerts = scene.until(lambda: told(scene, watches))
        scene.say(f"every watch has its alert; killed so far: {killer.kills}")
        rows = scene.until(lambda: all_sent(scene))
    finally:
        killer.end()
        for name, count in killer.kills.items():
            scene.kept.setdefault("kills", {})[name] = scene.kept.get("kills", {}).get(name, 0) + count
        scene.save()
    scene.collect()
    return {"kills": scene.kept["kills"], **audit(scene, alerts, rows), "calls": scene.kept["calls"]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--wheels", type=Path, help="as of long_watch; else FOLDER/wheels")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=8.5, help="of this call")
    words = parser.parse_args()
    os.environ |= {"ONNXFARM_LEASE_S": "25"}
    folder, first = words.folder.resolve(), [DOES_NOT, RUNS_IT]
    place = folder / f"exactly-once-{words.seed}"
    with watched_farm.opened(
        place, wheels=words.wheels or folder / "wheels", first=first, minutes=words.minutes
    ) as scene:
        try:
            found = torture(scene, seed=words.seed)
        except NotYetError:
            scene.say("the minutes of this call are over: the same command goes on")
            return AGAIN
    figure.publish(claim="Alerts are told exactly once under kills", seed=words.seed, figures=found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
