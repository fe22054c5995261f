"""Watches on real releases, each on a farm of its own that watches an index on this machine. By hand:

    python -m tests.acceptance.long_watch WHAT --folder FOLDER

WHAT
wheels        first, and once: takes the releases from the index that pip is set up for
transformer   1.29.0; then 1.30.0 to 1.31.1 appear; then one that is equal
celu          one node over [1, 80000]: 1.15.1; then 1.16.0 to 1.16.3 appear; then 1.17.0
quiet         ten watches over pairs that are known to be equal
speed         3 models × 2 releases × FP32 and INT8

Nobody orders anything once the watch is there: a release appears on the index, the farm's own poll finds it, and this
script looks on until the messages have arrived. What ran out of its minutes ends with 75: the same command goes on.
Prints what was seen as JSON; an AssertionError says what was not as it has to be.
"""

import argparse
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper

from farm.workshop.samples import builders
from tests.acceptance import watched_farm
from tests.acceptance.release_index import restamped
from tests.acceptance.watched_farm import DISTRIBUTION, NotYetError, Scene, now, seconds_between
from tests.bench import figure

MODELS = Path(__file__).parents[1] / "models"
AGAIN = 75
# so many looks of the farm at the index, after which nothing has happened, are nothing
QUIET_LOOKS = 3
SAME = "1.31.1.post1"
NUMPYS = ("numpy==2.4.6", "numpy==1.26.4")


@dataclass(frozen=True)
class Story:
    """One model over releases: `worse` appear together after `first`, and later `equal` one by one."""

    model: str
    make: Callable[[Path], Path]
    matrix: dict[str, Any]
    first: str
    worse: tuple[str, ...]
    equal: tuple[str, ...]


def sample(name: str) -> Callable[[Path], Path]:
    return lambda folder: builders.write_model(name, folder)


def celu(folder: Path) -> Path:
    """One Celu over [1, 80000]."""
    folder.mkdir(parents=True, exist_ok=True)
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 80_000]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Celu", ["x"], ["y"], name="celu")], "celu", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "celu.onnx")
    return folder / "celu.onnx"


STORIES = {
    "transformer": Story(
        model="transformer",
        make=sample("transformer"),
        matrix={"matrix": {"precision": ["fp32", "int8-dynamic"], "batch": [8], "threads": [1]}},
        first="1.29.0",
        worse=("1.30.0", "1.31.0", "1.31.1"),
        equal=(SAME,),
    ),
    "celu": Story(
        model="celu",
        make=celu,
        matrix={"matrix": {"precision": ["fp32"], "threads": [1]}},
        first="1.15.1",
        worse=("1.16.0", "1.16.1", "1.16.2", "1.16.3"),
        equal=("1.17.0",),
    ),
}


def tell(scene: Scene, story: Story) -> dict[str, Any]:
    """The story from the first look at the index to the last message; the figures."""
    scene.channels()
    model = scene.model(story.make(scene.folder / "models"))
    watch = scene.watch("upgrades", models=[model], reference=story.first, matrix=story.matrix)
    times = scene.kept["times"]
    if "worse" not in times:
        looks = nothing_happens(scene, watch)
        scene.say(f"{looks} looks at the index, {story.first} is all there is: no round")
        times["worse"] = now()
        scene.offer(*story.worse)
    rounds = judged(scene, watch, count=1)
    scene.say(f"round: {rounds[-1]['outcome']}: {rounds[-1]['sentence']}")
    assert rounds[-1]["outcome"] == "alert", rounds
    alert = explained(scene, watch)
    messages = scene.kept["messages"] = scene.kept.get("messages") or delivered(scene, alert)
    for release in story.equal:
        count = story.equal.index(release) + 2
        if release not in times:
            times[release] = now()
            scene.offer(release)
        rounds = judged(scene, watch, count=count)
        scene.say(f"round: {rounds[0]['outcome']}: {rounds[0]['sentence']}")
        assert rounds[0]["outcome"] != "alert", rounds
    return answer(scene, watch, rounds, first_alert=alert, messages=messages)


def nothing_happens(scene: Scene, watch: int) -> int:
    """Waits until the farm has looked some times; there has to be no round."""
    start = scene.index.asked.get(DISTRIBUTION, 0)
    scene.until(lambda: True if scene.index.asked.get(DISTRIBUTION, 0) >= start + QUIET_LOOKS else None)
    assert scene.get(f"/watches/{watch}/rounds") == []
    return scene.index.asked[DISTRIBUTION]


def judged(scene: Scene, watch: int, *, count: int) -> list[Any]:
    """Waits until so many rounds of a watch are judged; newest first."""

    def ask() -> list[Any] | None:
        rounds: list[Any] = scene.get(f"/watches/{watch}/rounds")
        return rounds if len([one for one in rounds if one["state"] == "judged"]) >= count else None

    return scene.until(ask)


def explained(scene: Scene, watch: int) -> Any:
    """Waits until the watch's oldest alert has its answers: since when, and what undoes it."""

    def ask() -> Any:
        found = scene.get(f"/alerts?list=all&watch={watch}")
        alert = scene.get(f"/alerts/{found[-1]['id']}") if found else None
        states = [one["state"] for one in alert["investigations"]] if alert else []
        return alert if states and not {"waiting", "measuring"} & {*states} else None

    alert = scene.until(ask)
    for one in alert["investigations"]:
        scene.say(f"{one['kind']}, {one['state']}: {one['sentence']}")
    return alert


def delivered(scene: Scene, alert: Any) -> dict[str, int]:
    """Waits until every message of an alert has been sent; how many came, by the receivers' own count."""
    channels = scene.kept["channels"]
    told = len([one for one in alert["events"] if one["kind"] in ("opened", "explained")])

    def ask() -> bool | None:
        sent = [one for number in channels for one in scene.get(f"/channels/{number}/deliveries")]
        return True if len(sent) >= 2 * told and {one["state"] for one in sent} == {"sent"} else None

    scene.until(ask)
    hooks, mails = ([one["id"] for one in scene.kept[place]] for place in ("hooks", "mails"))
    count = {"told": told, "webhooks": len(hooks), "mails": len(mails)}
    assert len({*hooks}) == len(hooks) == told, scene.kept["hooks"]
    assert len({*mails}) == len(mails) == told, scene.kept["mails"]
    scene.say(f"{count['webhooks']} webhooks with a right signature and {count['mails']} mails: {hooks}")
    return count


def answer(
    scene: Scene, watch: int, rounds: list[Any], *, first_alert: Any, messages: dict[str, int]
) -> dict[str, Any]:
    """What was seen, in figures and sentences."""
    alerts = scene.get(f"/alerts?list=all&watch={watch}")
    times, first = scene.kept["times"], rounds[-1]
    assert len(alerts) == 1, alerts
    ends = [one["ended_at"] for one in first_alert["investigations"]]
    return {
        "alerts": [{"state": one["state"], "release": one["release"], "sentence": one["sentence"]} for one in alerts],
        "symptoms": [
            {key: one[key] for key in ("kind", "label", "size", "explanation")} for one in first_alert["symptoms"]
        ],
        "first_bad": first_alert["first_bad"],
        "investigations": [
            {"kind": one["kind"], "sentence": one["sentence"], "steps": len(one["steps"])}
            for one in first_alert["investigations"]
        ],
        "rounds": [{key: one[key] for key in ("cause", "old", "new", "outcome", "sentence")} for one in rounds],
        "seconds": {
            "from the release on the index to the round": seconds_between(times["worse"], first["created_at"]),
            "from there to the judgement": seconds_between(first["created_at"], first["judged_at"]),
            "from there to the last answer": seconds_between(first["judged_at"], max(ends)),
        },
        "calls": scene.kept["calls"],
        "messages": messages,
    }


QUIET_MODELS = ("cnn_dyn", "encoder_dyn", "lstm", "mlp_external", "transformer")
# the second is the first under another number; the third and fourth are known to be equal from the gate's tests
QUIET_PAIRS = (("1.31.1", SAME), ("1.31.0", "1.31.1"))


def stay_quiet(scene: Scene) -> dict[str, Any]:
    """Ten watches over pairs that are equal: none may alert."""
    found = {}
    for name in QUIET_MODELS:
        path = builders.write_model(name, scene.folder / "models") if name == "transformer" else bundle_of(scene, name)
        scene.model(path)
        for old, new in QUIET_PAIRS:
            watch = scene.watch(
                f"{name} {old}", models=[path.stem], reference=old, matrix=QUIET_MATRIX, on_release=False
            )
            found[watch] = new
    # a second look says that the first one was read
    scene.until(lambda: True if scene.index.asked.get(DISTRIBUTION, 0) >= 2 else None)
    for watch, new in found.items():
        if not scene.get(f"/watches/{watch}/rounds"):
            scene.post(f"/watches/{watch}/call", candidate=new)
    rounds = [judged(scene, watch, count=1)[0] for watch in found]
    alerts = scene.get("/alerts?list=all")
    scene.collect()
    for one in rounds:
        scene.say(f"{one['model']} {one['old']} → {one['new']}: {one['outcome']}: {one['sentence']}")
    assert alerts == [], alerts
    assert scene.kept["hooks"] == scene.kept["mails"] == []
    outcomes = [one["outcome"] for one in rounds]
    return {
        "watches": len(found),
        "compared": sum(one["compared"] for one in rounds),
        "outcomes": outcomes,
        "alerts": 0,
    }


QUIET_MATRIX = {"matrix": {"precision": ["fp32"], "threads": [1]}}


def bundle_of(scene: Scene, name: str) -> Path:
    """A reference model as one file to upload: itself, or a zip with its external data."""
    source, data = MODELS / f"{name}.onnx", MODELS / f"{name}.onnx.data"
    if not data.exists():
        return source
    target = scene.folder / "models" / f"{name}.zip"
    target.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(target, "w") as archive:
        for path in (source, data):
            archive.write(path, path.name)
    return target


SPEED_MODELS = ("transformer", "convnet", "digits")
SPEED_PAIR = ("1.29.0", "1.31.1")
SPEED_MATRIX = {"matrix": {"precision": ["fp32", "int8-dynamic"], "batch": [1], "threads": [1]}}
# of the issue
ALLOWED_S = 360.0


def decide_fast(scene: Scene) -> dict[str, Any]:
    """Three models, two releases, FP32 and INT8: how long until each round is judged, confirmations included."""
    names = [scene.model(builders.write_model(name, scene.folder / "models")) for name in SPEED_MODELS]
    matrix, (old, new) = SPEED_MATRIX, SPEED_PAIR
    watch = scene.watch("speed", models=names, reference=old, matrix=matrix, on_release=False)
    if not scene.get(f"/watches/{watch}/rounds"):
        scene.post(f"/watches/{watch}/call", candidate=new)
    rounds = judged(scene, watch, count=len(names))
    start = min(one["created_at"] for one in rounds)
    for one in rounds:
        took = seconds_between(start, one["judged_at"])
        scene.say(f"{one['model']}: {one['outcome']} after {took:.0f} s: {one['sentence']}")
    whole = max(seconds_between(start, one["judged_at"]) for one in rounds)
    return {
        "models": len(names),
        "outcomes": {one["model"]: one["outcome"] for one in rounds},
        "seconds": whole,
        "allowed_s": ALLOWED_S,
        "calls": scene.kept["calls"],
    }


def fetch(wheels: Path, names: list[str]) -> None:
    """Takes wheels from the index that pip is set up for, those that are missing; makes the equal release."""
    wheels.mkdir(parents=True, exist_ok=True)
    for name in names:
        distribution, _, version = name.partition("==")
        if not list(wheels.glob(f"{distribution}-{version}-*.whl")):
            argv = [
                sys.executable,
                "-m",
                "pip",
                "download",
                "-q",
                "--no-deps",
                "--only-binary",
                ":all:",
                "-d",
                str(wheels),
            ]
            subprocess.run([*argv, name], check=True)
    for source in wheels.glob("onnxruntime-1.31.1-*.whl"):
        restamped(source, SAME)


def wanted(names: list[str]) -> list[str]:
    """The releases of some stories, and what they need."""
    releases = {one for name in names for one in (STORIES[name].first, *STORIES[name].worse, *STORIES[name].equal)}
    return [*(f"{DISTRIBUTION}=={one}" for one in sorted(releases - {SAME})), *NUMPYS]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["wheels", *STORIES, "quiet", "speed"])
    parser.add_argument("--folder", type=Path, required=True, help="where everything lies")
    parser.add_argument("--wheels", type=Path, help="where wheels lie, for several stories; else FOLDER/wheels")
    parser.add_argument("--minutes", type=float, default=8.5, help="of this call")
    words = parser.parse_args()
    folder: Path = words.folder.resolve()
    wheels: Path = words.wheels or folder / "wheels"
    if words.what == "wheels":
        fetch(wheels, wanted([*STORIES]))
        return 0
    story = STORIES.get(words.what)
    first = [story.first] if story else sorted({*SPEED_PAIR, *(one for pair in QUIET_PAIRS for one in pair)})
    with watched_farm.opened(folder / words.what, wheels=wheels, first=first, minutes=words.minutes) as scene:
        try:
            found = tell(scene, story) if story else stay_quiet(scene) if words.what == "quiet" else decide_fast(scene)
        except NotYetError:
            scene.say("the minutes of this call are over: the same command goes on")
            return AGAIN
    figure.publish(claim=__doc__.splitlines()[0], seed=0, figures={"story": words.what, **found})
    return 0


if __name__ == "__main__":
    sys.exit(main())
