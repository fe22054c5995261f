"""Stories that need minutes by nature, by name: what `bash deploy/test --long` runs.

A test of such a story is marked `long`, so that `bash deploy/test` leaves it out, and its file stands here.
"""

from dataclasses import dataclass, field

FOLDER = "{folder}"
# wheels and tools of the stories in containers, used again by the next
KEPT = "/var/tmp/onnxfarm-containers"
TUTORIALS = ("first-verdict", "second-machine", "first-gate", "first-watch")
# releases that several stories offer on an index of their own
WHEELS = "/var/tmp/onnxfarm-wheels"


@dataclass(frozen=True)
class Story:
    """What a story proves of which rooms, in about how many minutes on two cores, and its commands in their order.

    A command is a module of Python's with its words; `{folder}` in them is a folder for this story alone. `is_alone`:
    it judges times that it measures, or keeps images that others build too, so that nothing else may run beside it.
    """

    name: str
    proves: str
    minutes: int
    rooms: tuple[str, ...]
    commands: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    is_alone: bool = False


def _tests(*paths: str) -> tuple[str, ...]:
    """The tests of these files, those marked `long` too."""
    return (f"pytest -q -p no:randomly -m '' {' '.join(paths)}",)


def _watch(what: str) -> tuple[str, ...]:
    """A story on real releases, from the index that pip is set up for."""
    return tuple(f"tests.acceptance.long_watch {word} --folder {FOLDER} --wheels {WHEELS}" for word in ("wheels", what))


STORIES = (
    Story(
        "node-bodies",
        "5,000 spoilt requests made from the contract's types: no 500, no path told, no row changed by a refusal",
        8,
        ("farm/gateway", "farm/contract", "farm/fleet", "farm/runs"),
        _tests("tests/integration/node_api/test_any_body.py"),
        {"ONNXFARM_FUZZ_BODIES": "5000"},
    ),
    Story(
        "any-request",
        "5,000 requests to both APIs, made from their descriptions, half of them broken: no 500, each refusal in words",
        3,
        ("farm/api", "farm/gateway", "farm/base", "farm/accounts", "farm/registry", "farm/runs", "farm/alerts"),
        _tests("tests/integration/access/test_any_request.py"),
        {"ONNXFARM_FUZZ_REQUESTS": "5000"},
    ),
    Story(
        "browser-node",
        "a browser joins by its link and measures two releases of npm to a verdict, also when it is closed in between",
        5,
        ("worker/tab", "farm/api", "farm/fleet"),
        _tests("tests/acceptance/browser/test_browser_node.py"),
        is_alone=True,
    ),
    Story(
        "memory",
        "a grouped Conv takes more addresses from 1.23.2 and fewer from 1.27.0 on, found by release, under a limit too",
        10,
        ("farm/rules/judging", "worker/agent/measurement", "worker/runner", "onnxfarm"),
        (f"tests.bench.memory --seed 1 --strict --home {FOLDER}/home",),
    ),
    Story(
        "pytorch",
        "a model's program on PyTorch, eager and compiled, beside its .onnx on ONNX Runtime, to a verdict",
        5,
        ("worker/runner", "worker/agent/installation", "farm/workshop", "farm/rules/runtimes"),
        _tests("tests/acceptance/test_pytorch.py"),
        is_alone=True,
    ),
    Story(
        "genai-watch",
        "a watch hears of an onnxruntime-genai on an index, and its slower sampler is an alert outside the graph",
        6,
        ("farm/alerts", "farm/rules/generation", "worker/runner"),
        _tests("tests/acceptance/test_genai_watch.py"),
        is_alone=True,
    ),
    Story(
        "compiled",
        "what Qualcomm's provider compiled on its simulator: downloaded, uploaded, measured, and refused elsewhere",
        3,
        ("farm/registry", "farm/runs", "worker/agent/measurement"),
        _tests("tests/acceptance/test_compiled.py"),
    ),
    Story(
        "browser-watch",
        "a watch hears of a release on an npm registry, a browser measures it, and a wrapper that waits is an alert",
        5,
        ("worker/tab", "farm/alerts"),
        _tests("tests/acceptance/browser/test_browser_watch.py"),
        is_alone=True,
    ),
    Story(
        "browser-webgpu",
        "WebGPU of a browser on the software adapter: proven, marked as simulated, compared with nothing",
        2,
        ("worker/tab",),
        _tests("tests/acceptance/browser/test_browser_webgpu.py"),
    ),
    Story(
        "chaos",
        "200 blocks under 20 faults of every kind, on SQLite: each ends exactly once",
        9,
        ("farm/runs", "farm/fleet", "farm/config", "worker/agent/connection", "worker/agent/execution.py"),
        ("tests.chaos --seed 1 --blocks 200",),
    ),
    Story(
        "chaos-postgres",
        "the same on PostgreSQL, which is killed too",
        10,
        ("farm/runs", "farm/fleet", "farm/config"),
        ("tests.chaos --seed 1 --blocks 200 --database postgres",),
    ),
    Story(
        "quickstart",
        "quickstart measures, prints and ends by itself, or at a bad file; however it ends, no process of it is left",
        4,
        ("farm/config", "deploy"),
        _tests("tests/acceptance/test_quickstart.py"),
    ),
    Story(
        "tutorials",
        "the four tutorials of docs/, typed in a clone: a verdict, a second machine, a gate that fails, an alert",
        10,
        ("onnxfarm", "farm/config/embedded", *(f"docs/{name}.md" for name in TUTORIALS)),
        _tests("tests/acceptance/test_tutorials.py"),
    ),
    Story(
        "serve",
        "a farm that `onnxfarm serve` starts behind a proxy links to the proxy's address, and ends by Ctrl-C",
        1,
        ("farm/config", "deploy"),
        _tests("tests/acceptance/test_serve.py"),
    ),
    Story(
        "commands",
        "the command line on a farm with a real agent: followed, timed out, cancelled, read, and gone on with",
        4,
        ("onnxfarm", "farm/api"),
        _tests("tests/acceptance/test_commands.py", "tests/acceptance/test_more_rounds.py"),
    ),
    Story(
        "find",
        "a real agent races settings to an answer whose programs run, in Python and by onnxruntime-node",
        3,
        ("farm/rules/searches", "farm/alerts", "onnxfarm"),
        _tests("tests/acceptance/test_find_on_farm.py", "tests/acceptance/test_snippets.py"),
    ),
    Story(
        "faults",
        "a farm whose agent, gateway, broker or prepare worker is killed in the middle of a run ends it all the same",
        4,
        ("farm/runs", "farm/config", "worker/agent"),
        _tests("tests/acceptance/test_faults.py"),
    ),
    Story(
        "digits",
        "the digit classifier in every precision: accuracy, size and parity on its pages, from real runs",
        3,
        ("farm/rules/quality", "farm/workshop", "dashboard"),
        _tests("tests/acceptance/test_digits.py"),
    ),
    Story(
        "sample-run",
        "the sample transformer's verdict on the run's page, without scrolling, as this machine measured it",
        3,
        ("dashboard", "farm/rules/judging"),
        _tests("tests/acceptance/browser/test_sample_run.py"),
        is_alone=True,
    ),
    Story(
        "ladder",
        "ten releases of ONNX Runtime load exactly the opsets and IR versions that the table says",
        4,
        ("farm/rules/runtimes", "worker/runner", "worker/agent/installation"),
        _tests("tests/integration/worker/test_reference_models.py"),
    ),
    Story(
        "null-pairs",
        "of twenty pairs of the same thing, measured, at most one is called slower or faster",
        4,
        ("farm/rules/judging", "farm/rules/comparing", "worker/runner"),
        _tests("tests/acceptance/test_null_pairs.py"),
        is_alone=True,
    ),
    Story(
        "mutants",
        "2,060 mutants of real models, uploaded: each is told in words, and the web server answers all the while",
        8,
        ("farm/sandbox", "farm/workshop", "farm/registry"),
        (
            *_tests("tests/acceptance/test_mutants.py"),
            "tests.bench.mutants --structured 1000 --bytes 1000 --seed 1 --seconds 900",
        ),
    ),
    Story(
        "divergence",
        "a change of one quantum between two releases is found on a whole farm, and its node is named",
        3,
        ("farm/workshop", "worker/agent", "farm/rules/comparing"),
        _tests("tests/acceptance/long_divergence.py"),
    ),
    Story(
        "first-minutes",
        "models out of packages of PyPI and npm run from their defaults: inspected, measured on two releases, in INT8",
        20,
        ("farm/workshop", "onnxfarm", "farm/rules/cells"),
        (f"tests.acceptance.first_minutes --folder {FOLDER}",),
    ),
    Story(
        "watch-transformer",
        "real releases appear on an index: 1.31.1 is slower, since which release, by which operator, and who is told",
        12,
        ("farm/alerts", "farm/rules/changes", "farm/rules/tracing"),
        _watch("transformer"),
        is_alone=True,
    ),
    Story(
        "watch-celu",
        "the same with Celu, which no session option makes faster again",
        10,
        ("farm/alerts", "farm/rules/changes"),
        _watch("celu"),
        is_alone=True,
    ),
    Story(
        "watch-quiet",
        "ten watches over pairs that are known to be equal stay quiet",
        15,
        ("farm/alerts", "farm/rules/judging"),
        _watch("quiet"),
        is_alone=True,
    ),
    Story(
        "exactly-once",
        "alerts are told exactly once while web, gateway, broker, prepare and node are killed every few seconds",
        8,
        ("farm/alerts", "farm/config"),
        (
            f"tests.acceptance.long_watch wheels --folder {FOLDER} --wheels {WHEELS}",
            f"tests.acceptance.long_exactly_once --folder {FOLDER} --wheels {WHEELS}",
        ),
    ),
    Story(
        "rediscovery",
        "published changes of ONNX Runtime, drawn by seed, are found, dated and explained; unchanged pairs stay silent",
        8,
        ("farm/rules/changes", "farm/rules/judging", "onnxfarm", "worker/runner"),
        (f"tests.acceptance.rediscovery --sample 6 --seed 1 --resume {FOLDER}/rows.jsonl --least 0.5",),
        is_alone=True,
    ),
    Story(
        "moving",
        "a farm is backed up, restored in a new folder, from there on PostgreSQL and back on SQLite: each row the same",
        2,
        ("farm/backups",),
        _tests("tests/integration/test_backups.py"),
    ),
    Story(
        "monitoring",
        "the alert rules of deploy/monitoring fire when they should and are quiet before (needs Debian's prometheus)",
        1,
        ("deploy", "farm/api"),
        ("tests.acceptance.long_monitoring",),
    ),
    Story(
        "kubernetes",
        "deploy/kubernetes renders, fits Kubernetes' own schemas, and gives no container rights (needs kubectl)",
        1,
        ("deploy",),
        ("tests.acceptance.long_kubernetes",),
    ),
    Story(
        "upgrade",
        "from the release before to here without a stop: 200 blocks once, no page fails (needs haproxy and PostgreSQL)",
        15,
        ("farm/accounts", "farm/alerts", "farm/fleet", "farm/registry", "farm/runs", "farm/config", "farm/contract"),
        (
            "tests.chaos.upgrade",
            *_tests("tests/integration/test_release_before.py", "tests/acceptance/test_node_before.py"),
        ),
    ),
    Story(
        "containers",
        "compose's farm in containers, to a verdict while they are killed; who sees what (as root, with podman)",
        6,
        ("deploy", "farm/config", "farm/sandbox"),
        (f"tests.acceptance.containers --keep {KEPT}",),
        is_alone=True,
    ),
    Story(
        "pods",
        "deploy/kubernetes/small in podman's pods: pages, a hostile upload (as root, with podman, catatonit, kubectl)",
        2,
        ("deploy", "farm/sandbox"),
        (f"tests.acceptance.containers.pods --keep {KEPT}",),
        is_alone=True,
    ),
    Story(
        "units",
        "deploy/systemd under Debian's systemd in a container: sandbox, hostile upload, kill (as root, with podman)",
        1,
        ("deploy", "farm/sandbox"),
        (f"tests.acceptance.containers.units --keep {KEPT}",),
        is_alone=True,
    ),
    Story(
        "wheel",
        "deploy/build makes the same bytes twice; `bench` from the wheel alone on three Pythons, oldest packages too",
        5,
        ("pyproject.toml", "requirements", "deploy/build", "farm/fleet/farm_wheel.py"),
        ("tests.acceptance.long_wheel",),
    ),
    Story(
        "pull-request",
        "from the wheel alone: a model in LFS, slower, exported again, broken: by action, template, pytest, on a farm",
        16,
        (
            "onnxfarm/ci.py",
            "onnxfarm/forges.py",
            "onnxfarm/pytest_plugin.py",
            "deploy/github-action",
            "farm/rules/changes",
        ),
        ("tests.acceptance.long_pull_request", *_tests("tests/acceptance/test_farm_gate.py")),
    ),
    Story(
        "arm",
        "an aarch64 node under qemu joins, is seen to be emulated and takes a block (as root, with qemu-user-static)",
        4,
        ("worker/agent",),
        ("tests.acceptance.long_arm --root /var/tmp/onnxfarm-arm64",),
    ),
)
