"""The store with a bucket behind it, on a real server that speaks S3: what one machine writes another one reads."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from django.core.files.storage import storages
from moto.server import ThreadedMotoServer

from farm.base.refusals import Away
from farm.config.environment import make_bucket_storage
from farm.registry import bucket as file_bucket
from farm.registry import storage

CONTENT = b"a model" * 1000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    running = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    yield f"http://{host}:{port}"
    running.stop()


@pytest.fixture
def bucket(server: str, settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "tests")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "tests")
    settings.STORE_DIR = tmp_path / "store"
    settings.STORAGES = settings.STORAGES | {
        file_bucket.ALIAS: make_bucket_storage("models", url=server, region="us-east-1")
    }
    client = boto3.client("s3", endpoint_url=server, region_name="us-east-1")
    client.create_bucket(Bucket="models")
    yield client
    for entry in client.list_objects_v2(Bucket="models").get("Contents", []):
        client.delete_object(Bucket="models", Key=entry["Key"])
    client.delete_bucket(Bucket="models")
    client.close()
    used = storages[file_bucket.ALIAS]
    used.connection.meta.client.close()  # type: ignore[attr-defined]


def kept() -> Path:
    draft = storage.Draft("model.onnx")
    draft.write(CONTENT)
    draft.seal()
    path = draft.keep(team_id=3)
    draft.discard()
    return path


def keys(client: Any) -> list[str]:
    return [entry["Key"] for entry in client.list_objects_v2(Bucket="models").get("Contents", [])]


def test_a_kept_file_is_in_the_bucket_under_its_place_in_the_store(bucket: Any) -> None:
    assert kept().read_bytes() == CONTENT
    assert keys(bucket) == [f"3/{SHA256[:2]}/{SHA256}"]
    assert bucket.get_object(Bucket="models", Key=keys(bucket)[0])["Body"].read() == CONTENT


def test_another_machine_fetches_it_once_and_whole(bucket: Any, settings: Any, tmp_path: Path) -> None:
    kept()
    settings.STORE_DIR = tmp_path / "elsewhere"
    path = storage.fetch_blob(team_id=3, sha256=SHA256)
    assert path == tmp_path / "elsewhere" / "3" / SHA256[:2] / SHA256
    assert path.read_bytes() == CONTENT
    assert list(storage.incoming_dir().iterdir()) == []
    bucket.delete_object(Bucket="models", Key=keys(bucket)[0])
    assert storage.fetch_blob(team_id=3, sha256=SHA256).read_bytes() == CONTENT


def test_another_teams_file_is_not_found_by_its_digest(bucket: Any, settings: Any, tmp_path: Path) -> None:
    kept()
    settings.STORE_DIR = tmp_path / "elsewhere"
    assert not storage.fetch_blob(team_id=4, sha256=SHA256).exists()


def test_a_damaged_file_is_not_taken(bucket: Any, settings: Any, tmp_path: Path) -> None:
    kept()
    bucket.put_object(Bucket="models", Key=keys(bucket)[0], Body=b"something else")
    settings.STORE_DIR = tmp_path / "elsewhere"
    with pytest.raises(Away, match="another content than its name says"):
        storage.fetch_blob(team_id=3, sha256=SHA256)
    assert not storage.blob_path(team_id=3, sha256=SHA256).exists()
    assert list(storage.incoming_dir().iterdir()) == []


def test_a_removed_file_is_gone_from_the_bucket(bucket: Any) -> None:
    kept()
    file_bucket.delete_file(team_id=3, sha256=SHA256)
    assert keys(bucket) == []


def test_a_bucket_that_is_not_there_is_named_in_one_sentence(bucket: Any, server: str, settings: Any) -> None:
    settings.STORAGES = settings.STORAGES | {
        file_bucket.ALIAS: make_bucket_storage("nobody-s", url=server, region="us-east-1")
    }
    with pytest.raises(Away, match="The farm's bucket rejected a request"):
        kept()


def test_without_a_bucket_the_folder_is_all_there_is(settings: Any, tmp_path: Path) -> None:
    settings.STORE_DIR = tmp_path / "store"
    assert not file_bucket.is_configured()
    kept()
    assert storage.fetch_blob(team_id=3, sha256=SHA256).read_bytes() == CONTENT
    assert not storage.fetch_blob(team_id=3, sha256="0" * 64).exists()


def test_amazons_own_servers_are_asked_in_their_own_way() -> None:
    assert "endpoint_url" not in make_bucket_storage("models")["OPTIONS"]
    assert make_bucket_storage("models", url="http://s3.lan:9000")["OPTIONS"]["addressing_style"] == "path"
