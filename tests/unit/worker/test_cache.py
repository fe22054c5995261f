"""The artifact cache: digests, damage, size limit, copies."""

import hashlib
import os
import shutil
from pathlib import Path

import pytest

from farm.contract.cells import Bundle, FileRef
from farm.contract.reasons import ReasonCode
from worker.agent.installation.cache import ArtifactCache, ArtifactUnavailableError, FetchError


class Farm:
    """Files by digest, and how often each was fetched."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.fetched: list[str] = []

    def add(self, content: bytes, *, name: str = "file") -> FileRef:
        digest = hashlib.sha256(content).hexdigest()
        self.files[digest] = content
        return FileRef(name=name, sha256=digest, bytes=len(content))

    def fetch(self, digest: str, to: Path) -> None:
        self.fetched.append(digest)
        if digest not in self.files:
            raise FetchError("the farm answered 404")
        to.write_bytes(self.files[digest])


@pytest.fixture
def farm() -> Farm:
    return Farm()


def test_a_file_is_fetched_once_and_checked(farm: Farm, tmp_path: Path) -> None:
    cache, ref = ArtifactCache(tmp_path, fetch=farm.fetch), farm.add(b"model")
    assert cache.provide_file(ref).read_bytes() == b"model"
    cache.provide_file(ref)
    ArtifactCache(tmp_path, fetch=farm.fetch).provide_file(ref)
    assert len(farm.fetched) == 1


def test_bytes_of_another_digest_are_refused_and_not_kept(farm: Farm, tmp_path: Path) -> None:
    ref = farm.add(b"model")
    farm.files[ref.sha256] = b"forge"
    cache = ArtifactCache(tmp_path, fetch=farm.fetch)
    with pytest.raises(ArtifactUnavailableError) as raised:
        cache.provide_file(ref)
    assert raised.value.reason.code == ReasonCode.ARTIFACT_UNAVAILABLE
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_file_damaged_on_disk_is_fetched_again(farm: Farm, tmp_path: Path) -> None:
    ref = farm.add(b"model")
    ArtifactCache(tmp_path, fetch=farm.fetch).provide_file(ref).write_bytes(b"medol")
    assert ArtifactCache(tmp_path, fetch=farm.fetch).provide_file(ref).read_bytes() == b"model"
    assert len(farm.fetched) == 2


def test_a_file_that_cannot_be_fetched_is_a_reason_with_the_farms_words(farm: Farm, tmp_path: Path) -> None:
    absent = FileRef(name="absent.onnx", sha256="0" * 64, bytes=1)
    with pytest.raises(ArtifactUnavailableError, match=r"absent\.onnx.*404"):
        ArtifactCache(tmp_path, fetch=farm.fetch).provide_file(absent)


def test_the_file_used_longest_ago_goes_when_the_limit_is_reached(farm: Farm, tmp_path: Path) -> None:
    cache = ArtifactCache(tmp_path, fetch=farm.fetch, limit_bytes=25)
    refs = [farm.add(bytes([number]) * 10) for number in range(3)]
    for age, ref in enumerate(refs[:2]):
        os.utime(cache.provide_file(ref), (age, age))
    cache.provide_file(refs[0])
    cache.provide_file(refs[2])
    present = {path.name for path in tmp_path.glob("??/*")}
    assert present == {refs[0].sha256, refs[2].sha256}


def test_files_of_the_block_stay_even_above_the_limit(farm: Farm, tmp_path: Path) -> None:
    cache = ArtifactCache(tmp_path, fetch=farm.fetch, limit_bytes=15)
    refs = [farm.add(bytes([number]) * 10) for number in range(3)]
    for ref in refs:
        cache.provide_file(ref, keep=[one.sha256 for one in refs])
    assert len(list(tmp_path.glob("??/*"))) == 3


def test_a_bundle_is_copied_under_its_names_and_not_linked(farm: Farm, tmp_path: Path) -> None:
    model, data = farm.add(b"model", name="m.onnx"), farm.add(b"weights", name="m.data")
    cache = ArtifactCache(tmp_path / "cache", fetch=farm.fetch)
    main = cache.copy_bundle_to(Bundle(main="m.onnx", files=(model, data)), tmp_path / "work")
    assert main == tmp_path / "work" / "m.onnx"
    assert (tmp_path / "work" / "m.data").read_bytes() == b"weights"
    for path in (main, tmp_path / "work" / "m.data"):
        assert not path.is_symlink()
        assert path.stat().st_nlink == 1
    main.write_bytes(b"changed by a runner")
    assert cache.provide_file(model).read_bytes() == b"model"
    shutil.rmtree(tmp_path / "work")
