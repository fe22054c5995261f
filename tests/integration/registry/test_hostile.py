"""The named list of bombs and escapes: each ends within 30 s with one sentence, and nothing outside was read.

They go the way of every upload: kept by the service, inspected in the sandboxed child. A canary outside tells by its
access time whether somebody read it. docs/results.md counts mutants of real models.
"""

import io
import os
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from onnx import TensorProto, helper

from farm.registry import services
from farm.registry.models import Version
from farm.registry.states import VersionState
from tests.unit.workshop import making
from tests.unit.workshop.test_bad_models import bomb

pytestmark = pytest.mark.django_db
LIMIT_S = 30.0
LONG_AGO = 1_000_000_000.0
SECRET = b"a secret outside of every bundle, 64 bytes of it to fill a tensor"
# the first words of /etc/passwd
OF_THE_SYSTEM = "root:x:"
Files = dict[str, bytes]


def external(location: str, **places: object) -> bytes:
    """A model whose weights lie at a location of its own choice."""
    made = making.linear(4, 4)
    tensor = made.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.ClearField("float_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **places}.items():
        entry = tensor.external_data.add()
        entry.key, entry.value = key, str(value)
    return made.SerializeToString()


def deep_subgraphs(depth: int) -> bytes:
    """An If in an If in an If …, written byte by byte: the library itself refuses to write it."""
    graph = _field(1, _field(4, b"Identity"))
    for _ in range(depth):
        attribute = _field(1, b"then_branch") + _field(6, graph) + _key(20, 0) + _varint(onnx.AttributeProto.GRAPH)
        graph = _field(1, _field(4, b"If") + _field(5, attribute))
    return making.relu().SerializeToString() + _field(7, graph)


def _key(number: int, kind: int) -> bytes:
    return _varint(number << 3 | kind)


def _field(number: int, content: bytes) -> bytes:
    return _key(number, 2) + _varint(len(content)) + content


def many_nodes(count: int) -> bytes:
    """A file of empty nodes, which a parser turns into a hundred times its size."""
    return making.relu().SerializeToString() + _field(7, b"\x0a\x00" * count)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def lying(length: int) -> bytes:
    """A graph that says it is longer than the file."""
    return making.relu().SerializeToString() + _key(7, 2) + _varint(length) + b"\x0a\x00"


def huge_shape(*dims: int) -> bytes:
    """A tensor that says it is larger than any machine."""
    made = making.linear()
    del made.graph.initializer[0].dims[:]
    made.graph.initializer[0].dims.extend(dims)
    return made.SerializeToString()


def expanding_constant() -> bytes:
    """A few bytes that ask shape inference for a tensor of a million millions."""
    shape = making.weight("shape", np.array([10**6, 10**6], dtype=np.int64))
    node = helper.make_node("ConstantOfShape", ["shape"], ["y"])
    return making.model(
        [node, helper.make_node("Relu", ["x"], ["z"])], [making.port("x")], [making.port("z")], weights=[shape]
    ).SerializeToString()


def endless_loop() -> bytes:
    """A Loop of 2⁶² turns, which constant folding would run."""
    turns = making.weight("turns", np.array(2**62, dtype=np.int64))
    go_on = making.weight("go_on", np.array(True))
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["d"])],
        "body",
        [making.port("i", [], TensorProto.INT64), making.port("c", [], TensorProto.BOOL)],
        [making.port("d", [], TensorProto.BOOL)],
    )
    nodes = [helper.make_node("Loop", ["turns", "go_on"], [], body=body), helper.make_node("Relu", ["x"], ["y"])]
    return making.model(nodes, [making.port("x")], [making.port("y")], weights=[turns, go_on]).SerializeToString()


def long_chain(count: int) -> bytes:
    nodes = [helper.make_node("Relu", [f"t{n}"], [f"t{n + 1}"]) for n in range(count)]
    return making.model(nodes, [making.port("t0")], [making.port(f"t{count}")]).SerializeToString()


def zipped(files: Files, *, link: str = "") -> bytes:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        if link:
            entry = zipfile.ZipInfo("weights.bin")
            entry.external_attr = 0o120777 << 16
            archive.writestr(entry, link)
    return memory.getvalue()


# name: how its files are made, from the path of a file outside
HOSTILE: dict[str, Callable[[Path], Files]] = {
    "functions that double thirty times": lambda secret: {"m.onnx": bomb(30).SerializeToString()},
    "subgraphs two hundred deep": lambda secret: {"m.onnx": deep_subgraphs(200)},
    "subgraphs five thousand deep": lambda secret: {"m.onnx": deep_subgraphs(5_000)},
    "groups a hundred thousand deep": lambda secret: {"m.onnx": b"\x3b" * 100_000},
    "a length of two gigabytes": lambda secret: {"m.onnx": lying(2**31 - 1)},
    "a length of 2^63": lambda secret: {"m.onnx": lying(2**63)},
    "sixteen megabytes of empty nodes": lambda secret: {"m.onnx": many_nodes(8_000_000)},
    "a chain of five thousand nodes": lambda secret: {"m.onnx": long_chain(5_000)},
    "a tensor of 2^62 values": lambda secret: {"m.onnx": huge_shape(2**31, 2**31)},
    "a tensor of negative size": lambda secret: {"m.onnx": huge_shape(-4, 3)},
    "a constant of a million millions": lambda secret: {"m.onnx": expanding_constant()},
    "a loop of 2^62 turns": lambda secret: {"m.onnx": endless_loop()},
    "external data by a full path": lambda secret: {"m.onnx": external(str(secret))},
    "external data two folders up": lambda secret: {"m.onnx": external(f"../../{secret.name}")},
    "external data in /etc": lambda secret: {"m.onnx": external("/etc/passwd")},
    "external data in /proc": lambda secret: {"m.onnx": external("/proc/self/environ")},
    "external data by a file address": lambda secret: {"m.onnx": external(f"file://{secret}")},
    "external data with a nul in its name": lambda secret: {"m.onnx": external(f"w.bin\x00{secret}")},
    "external data past the end": lambda secret: {
        "m.onnx": external("w.bin", offset=0, length=10**12), "w.bin": b"\x00" * 64,
    },
    "external data before the beginning": lambda secret: {
        "m.onnx": external("w.bin", offset=-64, length=64), "w.bin": b"\x00" * 64,
    },
    "the model as its own external data": lambda secret: {"m.onnx": external("m.onnx", offset=0, length=64)},
    "a zip with a link to a file outside": lambda secret: {
        "m.zip": zipped({"m.onnx": external("weights.bin")}, link=str(secret)),
    },
    "a zip with a path outside": lambda secret: {
        "m.zip": zipped({"m.onnx": external("w.bin"), f"../{secret.name}": b"x"}),
    },
    "a zip of four gigabytes by its list": lambda secret: {"m.zip": _swollen(says=4_000_000_000)},
    "a zip with more in it than its list says": lambda secret: {"m.zip": _swollen(says=10)},
    "a zip within a zip": lambda secret: {"m.zip": zipped({"m.zip": zipped({"m.onnx": b"x"})})},
    "pickled inputs": lambda secret: {"m.onnx": making.relu().SerializeToString(), "inputs.npz": _pickled()},
}  # fmt: skip


def _swollen(*, says: int) -> bytes:
    """Five million zeros, and another size in the list."""
    content = bytearray(zipped({"m.onnx": b"\x00" * 5_000_000}))
    at = content.rindex(b"PK\x01\x02")
    content[at + 24 : at + 28] = says.to_bytes(4, "little")
    return bytes(content)


def _pickled() -> bytes:
    memory = io.BytesIO()
    np.savez(memory, x=np.array([{"a": 1}], dtype=object))
    return memory.getvalue()


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    """A file beside the store that was last read long ago; file systems note the next time it is."""
    path = tmp_path / "secret.bin"
    path.write_bytes(SECRET)
    os.utime(path, (LONG_AGO, time.time()))
    return path


def was_read(path: Path) -> bool:
    return path.stat().st_atime != LONG_AGO


def test_the_canary_tells_that_it_was_read(canary: Path) -> None:
    assert not was_read(canary)
    canary.read_bytes()
    if not was_read(canary):
        pytest.skip("this file system notes no access times, so a read outside is seen in answers only")


@pytest.mark.parametrize("name", HOSTILE)
def test_it_ends_in_time_with_a_sentence_and_nothing_outside_was_read(name: str, member_api: Client, canary: Path):
    files = [SimpleUploadedFile(called, content) for called, content in HOSTILE[name](canary).items()]
    began = time.monotonic()
    answer = member_api.post("/api/v1/uploads", {"files": files})
    if answer.status_code == 202:
        services.inspect_version(answer.json()["id"])
        version = Version.objects.get()
        verdict, told = version.problem, str(version.inspection)
        assert version.state in (VersionState.READY, VersionState.REJECTED)
    else:
        assert 400 <= answer.status_code < 500
        verdict, told = answer.json()["detail"], answer.content.decode()
        version = None
    assert time.monotonic() - began < LIMIT_S
    assert (version is not None and version.state == VersionState.READY) or verdict.endswith("."), verdict
    assert "Traceback" not in verdict
    assert "internal error" not in verdict
    assert SECRET[:16].decode() not in told
    assert OF_THE_SYSTEM not in told
    assert not was_read(canary)
    if version is not None and version.state == VersionState.READY:
        assert name in HARMLESS, f"{name} was taken: {version.inspection}"


# what inspection may take, because nothing is computed and nothing outside is touched; cells then say what happens
HARMLESS = (
    "a chain of five thousand nodes",
    "a tensor of 2^62 values",
    "a tensor of negative size",
    "a constant of a million millions",
    "a loop of 2^62 turns",
    "subgraphs two hundred deep",
)


def test_the_list_is_made_of_real_models() -> None:
    assert onnx.load_from_string(endless_loop()).graph.node[0].op_type == "Loop"
    assert onnx.load_from_string(external("x")).graph.initializer[0].data_location == TensorProto.EXTERNAL
