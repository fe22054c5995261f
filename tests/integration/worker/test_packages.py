"""What a node installs, and what a package may do on it: real wheels, the real installer, the real sandbox."""

import json
import re
from pathlib import Path
from uuid import uuid4

import pytest

from farm.contract.cells import Loads, Runtime
from farm.contract.reasons import ReasonCode
from farm.rules.runtimes import opsets
from farm.sandbox import confinement
from tests.acceptance.release_index import ReleaseIndex
from tests.integration.worker.making import runtime_store
from tests.integration.worker.wheels import make_source, make_wheel
from worker.agent.installation.installer import ProbedEnvironment, probe_loadable_versions
from worker.agent.installation.runtimes import RuntimeStore, RuntimeUnavailableError

needs_walls = pytest.mark.skipif(
    confinement.find_available_level() == "none", reason="no sandbox works on this machine"
)
# it looks like a runtime, and tries what it can on the way
RUNTIME = """
import os
for path in ({outside!r}, os.path.expanduser("~/outside")):
    try:
        open(path, "w").write("I was here")
    except OSError:
        pass
try:
    secret = open({secret!r}).read()
except OSError:
    secret = "none"
__version__ = "1.99.0"
def get_available_providers():
    return ["CPUExecutionProvider", "Secret" + secret]
"""


@pytest.fixture
def offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages that the installer of this machine looks into."""
    # uv knows the wheels of a folder by their paths, and those of an earlier run of the tests may have been the same
    folder = tmp_path / f"offered-{uuid4().hex}"
    folder.mkdir()
    monkeypatch.setenv("UV_FIND_LINKS", str(folder))
    return folder


def runtime(distribution: str, version: str) -> Runtime:
    return Runtime(distribution=distribution, version=version)


def runtime_files(folder: Path) -> dict[str, str]:
    (folder / "secret").write_text("Hunter2")
    said = RUNTIME.format(outside=str(folder / "outside"), secret=str(folder / "secret"))
    hook = f"import os; open({str(folder / 'hooked')!r}, 'a').write(str(os.getpid()))\n"
    return {"onnxruntime/__init__.py": said, "hook.pth": hook}


def test_a_member_cannot_install_a_package_of_their_choice_on_a_node(tmp_path: Path, offered: Path) -> None:
    make_wheel(offered, "evil-package", "1.31.1", runtime_files(tmp_path))
    store = RuntimeStore(tmp_path / "runtimes")
    with pytest.raises(RuntimeUnavailableError, match="Unknown distribution 'evil-package'") as refused:
        store.provide(runtime("evil-package", "1.31.1"))
    assert refused.value.reason.code == ReasonCode.UNKNOWN_RUNTIME
    assert not (tmp_path / "runtimes").exists(), "nothing was installed, not even a folder made"
    assert not (tmp_path / "hooked").exists()


def test_what_lies_installed_from_earlier_is_refused_like_what_is_not(tmp_path: Path, offered: Path) -> None:
    make_wheel(offered, "my-ort", "0.3", runtime_files(tmp_path))
    allowing = RuntimeStore(tmp_path / "runtimes", allowed=["my-ort"])
    assert allowing.provide(runtime("my-ort", "0.3")).packages["my-ort"] == "0.3"
    with pytest.raises(RuntimeUnavailableError, match="Unknown distribution 'my-ort'"):
        RuntimeStore(tmp_path / "runtimes").provide(runtime("my-ort", "0.3"))


@needs_walls
def test_a_package_that_is_looked_at_reaches_nothing_of_the_nodes_owner(tmp_path: Path, offered: Path) -> None:
    make_wheel(offered, "onnxruntime", "1.99.0", runtime_files(tmp_path))
    found = RuntimeStore(tmp_path / "runtimes").provide(runtime("onnxruntime", "1.99.0"))
    assert found.providers == ("CPUExecutionProvider", "Secretnone")
    assert not (tmp_path / "outside").exists()
    assert not (tmp_path / "hooked").exists(), "its .pth file ran outside the sandbox"


# a release that says of itself what it loads, by the version in the model's last byte
LADDER = """
__version__ = "1.99.0"
def get_available_providers():
    return ["CPUExecutionProvider"]
class SessionOptions:
    pass
class InferenceSession:
    def __init__(self, model, options, providers):
        {body}
"""


@needs_walls
@pytest.mark.parametrize(
    "body",
    [
        "pass",
        "raise ValueError('nothing loads')",
        "import os; os.abort()",
        "import os; os.write(int(os.environ['ONNXFARM_REPLY_FD']), b'{\"opset\": 31}')",
        "import os; os.write(int(os.environ['ONNXFARM_REPLY_FD']), b'[' * 1000000); os._exit(0)",
        'import os; os.write(int(os.environ[\'ONNXFARM_REPLY_FD\']), b\'{"opset":1e9,"ir":0,"ml":-1}\'); os._exit(0)',
    ],
)
def test_a_release_that_fails_on_the_ladder_is_installed_and_nothing_is_known_of_it(
    tmp_path: Path, offered: Path, body: str
) -> None:
    make_wheel(offered, "onnxruntime", "1.99.0", {"onnxruntime/__init__.py": LADDER.format(body=body)})
    store = RuntimeStore(tmp_path / "runtimes")
    assert store.provide(runtime("onnxruntime", "1.99.0")).loads is None
    assert store.list_loads() == {}


@needs_walls
def test_what_a_release_loads_is_kept_with_it(tmp_path: Path, offered: Path) -> None:
    body = "assert model[-1] < (15 if b'Binarizer' in model else 31) and model[1] < 17"
    make_wheel(offered, "onnxruntime", "1.99.0", {"onnxruntime/__init__.py": LADDER.format(body=body)})
    RuntimeStore(tmp_path / "runtimes").provide(runtime("onnxruntime", "1.99.0"))
    learnt = RuntimeStore(tmp_path / "runtimes").list_loads()
    assert learnt == {"onnxruntime==1.99.0": Loads(opset=30, ir=16, ml=14)}


@pytest.mark.parametrize("version", ["1.18.1", "1.31.1", "1.32.0"])
def test_the_ladder_of_a_real_release_is_what_the_table_says(version: str) -> None:
    found = runtime_store().provide(runtime("onnxruntime", version))
    assert probe_loadable_versions(found.folder) == Loads(
        **opsets.limits_of(version).model_dump(exclude={"is_assumed"})
    )


def test_a_forged_release_is_refused_by_its_hash_unless_the_owner_allows_builds_of_their_own(
    tmp_path: Path, offered: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken_over = tmp_path / "taken-over"
    make_wheel(taken_over, "onnxruntime", "1.31.1", runtime_files(tmp_path))
    make_wheel(taken_over, "numpy", "2.4.6", {"numpy/__init__.py": ""})
    monkeypatch.setenv("UV_NO_CONFIG", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    with ReleaseIndex(taken_over, port=0, offered={}) as index:
        monkeypatch.setenv("UV_DEFAULT_INDEX", index.url)
        with pytest.raises(RuntimeUnavailableError, match=r"is not one of those.*by their sha256") as refused:
            RuntimeStore(tmp_path / "runtimes").provide(runtime("onnxruntime", "1.31.1"))
        # both are forged, and either download may be the first to end
        assert re.search(r"allow it by its name: --allow-package (onnxruntime|numpy)$", str(refused.value))
        assert not (tmp_path / "hooked").exists()
        owner = RuntimeStore(tmp_path / "mine", allowed=["onnxruntime", "numpy"])
        packages = owner.provide(runtime("onnxruntime", "1.31.1")).packages
    assert packages == {"numpy": "2.4.6", "onnxruntime": "1.31.1"}


def test_a_forged_file_beside_the_right_one_is_passed_over(tmp_path: Path, offered: Path) -> None:
    make_wheel(offered, "onnxruntime", "1.31.1", runtime_files(tmp_path))
    found = RuntimeStore(tmp_path / "runtimes").provide(runtime("onnxruntime", "1.31.1"))
    assert not any(name.startswith("Secret") for name in found.providers)


def test_a_source_archive_is_never_built_on_a_node(tmp_path: Path, offered: Path) -> None:
    make_source(offered, "onnxruntime", "1.99.0", f"open({str(tmp_path / 'built')!r}, 'w')\n")
    with pytest.raises(RuntimeUnavailableError, match=r"onnxruntime==1\.99\.0 could not be installed"):
        RuntimeStore(tmp_path / "runtimes").provide(runtime("onnxruntime", "1.99.0"))
    assert not (tmp_path / "built").exists()


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("scripts/python", "reserved name"),
        ("scripts/python3", "reserved name"),
        ("data/bin/python", "Failed to install"),
        ("data/pyvenv.cfg", "replaced the environment's interpreter or its settings"),
    ],
)
def test_a_package_cannot_put_itself_in_the_place_of_the_interpreter(
    place: str, words: str, tmp_path: Path, offered: Path
) -> None:
    script = f"#!/bin/sh\ntouch {tmp_path / 'outside'}\n"
    brought = {f"onnxruntime-1.99.0.data/{place}": script}
    make_wheel(offered, "onnxruntime", "1.99.0", {**runtime_files(tmp_path), **brought})
    with pytest.raises(RuntimeUnavailableError, match=words):
        RuntimeStore(tmp_path / "runtimes").provide(runtime("onnxruntime", "1.99.0"))
    assert not (tmp_path / "outside").exists()
    assert not (tmp_path / "runtimes" / "onnxruntime-1.99.0").exists()


def test_a_marker_that_a_package_brought_makes_no_runtime_of_another_one(tmp_path: Path, offered: Path) -> None:
    marker = {"runtime": {"distribution": "onnxruntime", "version": "1.31.1"}, "python": "3.11.7", "bytes": 1,
              "providers": [], "packages": {}}  # fmt: skip
    place = tmp_path / "runtimes" / "onnxruntime-1.99.0"
    (place / "bin").mkdir(parents=True)
    (place / "bin" / "python").touch()
    (place / "onnxfarm.json").write_text(json.dumps(marker))
    assert RuntimeStore(tmp_path / "runtimes").list_installed() == ()


def test_the_folder_that_somebody_works_in_names_no_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_wheel(tmp_path / "theirs", "onnxruntime", "1.99.0", runtime_files(tmp_path))
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    (checkout / "uv.toml").write_text(f'find-links = ["{tmp_path / "theirs"}"]\n')
    monkeypatch.chdir(checkout)
    with pytest.raises(RuntimeUnavailableError, match=r"onnxruntime==1\.99\.0 could not be installed"):
        RuntimeStore(tmp_path / "runtimes").provide(runtime("onnxruntime", "1.99.0"))


@pytest.mark.parametrize(
    "said",
    [
        '{"version": "1.31.1; rm -rf ~", "python": "3.11.7", "providers": [], "packages": {}}',
        '{"version": "1.31.1", "python": "3.11.7", "providers": ["../../x"], "packages": {}}',
        '{"version": "1.31.1", "python": "3.11.7", "providers": [], "packages": {"numpy": "1\\n--extra-index-url=x"}}',
        '{"version": "1.31.1", "python": "3.11.7", "providers": [], "packages": {"-r/etc/passwd": "1"}}',
        '{"version": "1.31.1", "python": "3.11.7", "providers": [], "packages": {}, "folder": "/"}',
        '{"version": 1, "python": null, "providers": "CPU", "packages": []}',
        "[]",
        "",
    ],
)
def test_what_a_package_says_of_itself_is_names_and_numbers_or_nothing(said: str) -> None:
    with pytest.raises(ValueError, match="validation error"):
        ProbedEnvironment.model_validate_json(said)


def test_an_import_that_never_ends_or_floods_ends_the_installation_with_a_sentence(
    tmp_path: Path, offered: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.agent.installation.installer.PROBE_S", 2.0)
    make_wheel(offered, "onnxruntime", "1.99.0", {"onnxruntime/__init__.py": "while True: pass\n"})
    with pytest.raises(RuntimeUnavailableError, match=r"its limit is 2 s"):
        RuntimeStore(tmp_path / "runtimes").provide(runtime("onnxruntime", "1.99.0"))
