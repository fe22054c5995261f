"""Prompts that somebody gives: taken as token ids, the same bytes for the same ids; every bad form in a sentence."""

import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from farm.rules.runtimes.genai import CONFIG
from farm.workshop import arrays, orders
from farm.workshop.child import prompts
from farm.workshop.samples import builders, decoder, genai
from tests.unit.workshop import making

IDS = np.array([5, 17, 999], dtype=np.int64)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("decoder")
    builders.write_model("decoder", folder)
    return folder


def accepted(bundle: Path, path: Path, *, main: str = "decoder.onnx") -> dict[str, Any]:
    out = path.with_name("accepted.npz")
    return prompts.accept_prompts({"folder": str(bundle), "main": main, "prompts": str(path), "out": str(out)})


def refused(bundle: Path, path: Path, *, main: str = "decoder.onnx") -> str:
    answer = accepted(bundle, path, main=main)
    assert "problem" in answer, answer
    assert not path.with_name("accepted.npz").exists()
    return str(answer["problem"]["text"])


def test_one_prompt_or_a_row_for_each_sequence_is_taken_with_a_text_to_score(bundle: Path, tmp_path: Path) -> None:
    one = arrays.write_npz(tmp_path / "one.npz", {"prompt": IDS})
    assert accepted(bundle, one)["answer"] == {"rows": 1, "tokens": 3, "text_tokens": 0}
    held = arrays.read_npz(tmp_path / "accepted.npz")
    assert (list(held), held["prompt"].tolist(), str(held["prompt"].dtype)) == (["prompt"], [[5, 17, 999]], "int64")
    rows = np.stack([IDS, IDS[::-1]]).astype(np.int32)
    more = arrays.write_npz(tmp_path / "more.npz", {"text": np.arange(40), "prompt": rows})
    assert accepted(bundle, more)["answer"] == {"rows": 2, "tokens": 3, "text_tokens": 40}
    held = arrays.read_npz(tmp_path / "accepted.npz")
    assert (list(held), held["text"].tolist()) == (["prompt", "text"], list(range(40)))


def test_the_same_ids_are_the_same_bytes_whatever_wrote_them(bundle: Path, tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "packed.npz", prompt=IDS.astype(np.int32))
    accepted(bundle, tmp_path / "packed.npz")
    first = (tmp_path / "accepted.npz").read_bytes()
    accepted(bundle, arrays.write_npz(tmp_path / "plain.npz", {"prompt": IDS[None]}))
    assert (tmp_path / "accepted.npz").read_bytes() == first


@pytest.mark.parametrize(
    ("held", "words"),
    [
        ({"prompt": [5, 1000]}, "prompt[1] is the token id 1000, and the vocabulary has 1,000: ids are 0 to 999."),
        ({"prompt": [[5], [-1]]}, "prompt[1, 0] is the token id -1, and the vocabulary has 1,000"),
        ({"prompt": [5.0]}, "The array prompt is float64: token ids are int64, convert it."),
        ({"prompt": np.array([5], dtype=np.uint64)}, "The array prompt is uint64: token ids are int64"),
        ({"prompt": ["five"]}, "The array prompt is <U4: token ids are int64"),
        ({"prompt": 5}, "The array prompt has the shape []: token ids have [tokens] or [rows, tokens]."),
        ({"prompt": [[[5]]]}, "The array prompt has the shape [1, 1, 1]: token ids have"),
        ({"prompt": np.zeros((2, 0), dtype=np.int64)}, "The array prompt has the shape [2, 0] and holds no token"),
        (
            {"prompt": np.zeros((65, 1), dtype=np.int64)},
            "The array prompt has 65 rows: at most 64 are generated at once",
        ),
        ({"prompt": np.zeros(32_769, dtype=np.int64)}, "The prompts have 32,769 tokens: at most 32,768 are taken."),
        ({"prompt": IDS, "text": [[1, 2]]}, "The array text has the shape [1, 2]: token ids have [tokens]."),
        ({"prompt": IDS, "text": [1]}, "The array text has 1 tokens: a text to score has 2 to 1,048,576."),
        ({"prompt": IDS, "text": [1, 2, 4000]}, "text[2] is the token id 4000, and the vocabulary has 1,000"),
        ({"prompts": IDS}, "given.npz has no array called prompt: save the token ids as prompt."),
        ({"prompt": IDS, "mask": IDS}, "given.npz has an array 'mask': it holds prompt, and perhaps text."),
    ],
)
def test_ids_that_no_decoder_takes_are_refused_in_a_sentence(
    bundle: Path, tmp_path: Path, held: dict[str, Any], words: str
) -> None:
    path = arrays.write_npz(tmp_path / "given.npz", {name: np.asarray(ids) for name, ids in held.items()})
    assert words in refused(bundle, path)


def test_pickles_and_what_is_no_archive_are_refused_unread(bundle: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    np.savez(tmp_path / "objects.npz", prompt=np.array([Trap(ran)], dtype=object), allow_pickle=True)
    assert "objects.npz holds no plain arrays" in refused(bundle, tmp_path / "objects.npz")
    (tmp_path / "bare.npz").write_bytes(pickle.dumps(Trap(ran)))
    assert "bare.npz is not an .npz archive" in refused(bundle, tmp_path / "bare.npz")
    np.save(tmp_path / "single.npy", IDS)
    (tmp_path / "single.npy").rename(tmp_path / "single.npz")
    assert "single.npz is a single array" in refused(bundle, tmp_path / "single.npz")
    assert not ran.exists()


def test_a_bomb_is_refused_before_it_is_unpacked(bundle: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("prompt.npy", bytes(80 << 20))
    assert (tmp_path / "bomb.npz").stat().st_size < 1 << 20
    assert "bomb.npz holds 83,886,080 bytes of arrays; at most 67,108,864 are read." in refused(
        bundle, tmp_path / "bomb.npz"
    )


def test_a_model_that_does_not_generate_takes_no_prompts(tmp_path: Path) -> None:
    folder = making.save(making.relu(), tmp_path / "bundle")
    path = arrays.write_npz(tmp_path / "given.npz", {"prompt": IDS})
    said = refused(folder, path, main="model.onnx")
    assert said.startswith("Prompts are for models that generate: The model has no past among its inputs")


def test_ids_are_below_the_vocabulary_of_the_configuration_beside_the_model(tmp_path: Path) -> None:
    folder = genai.write_folder(tmp_path / "folder", decoder.make())
    config = folder / CONFIG
    config.write_text(config.read_text().replace('"vocab_size": 1000', '"vocab_size": 900'))
    path = arrays.write_npz(tmp_path / "given.npz", {"prompt": IDS})
    assert "prompt[2] is the token id 999, and the vocabulary has 900" in refused(folder, path, main=genai.MAIN)


def test_the_sandbox_accepts_them_and_refuses_them_in_the_same_words(bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    good = arrays.write_npz(tmp_path / "good.npz", {"prompt": IDS, "text": IDS})
    found = orders.accept_prompts(bundle, "decoder.onnx", prompts=good, out_dir=tmp_path / "out")
    assert (found.rows, found.tokens, found.text_tokens) == (1, 3, 3)
    assert arrays.read_npz(found.path)["prompt"].tolist() == [[5, 17, 999]]
    bad = arrays.write_npz(tmp_path / "bad.npz", {"prompt": IDS + 1})
    with pytest.raises(orders.WorkshopError, match=r"prompt\[2\] is the token id 1000"):
        orders.accept_prompts(bundle, "decoder.onnx", prompts=bad, out_dir=tmp_path / "out")


class Trap:
    """Unpickling it makes a file."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self._place,))
