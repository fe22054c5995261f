"""Writes accuracies.json: texts and boxes, and what jiwer and pycocotools say of them.

uv run --no-project --with jiwer==4.0.0 --with pycocotools==2.0.11 python tests/vectors/make_accuracies.py
"""

import json
from importlib.metadata import version
from pathlib import Path

import jiwer
import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

DICE = np.random.default_rng(11)
WORDS = ["the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "while", "it", "rains", "in", "März"]


def texts() -> dict[str, object]:
    """Sentences, and what somebody heard: words are left out, doubled or changed."""
    wanted, said = [], []
    for _ in range(40):
        words = list(DICE.choice(WORDS, size=DICE.integers(1, 9)))
        kept = [word for word in words for _ in range(DICE.choice([0, 1, 1, 1, 1, 2]))]
        heard = [word if DICE.random() < 0.8 else word[::-1] for word in kept]
        wanted.append(" ".join(words))
        said.append(" ".join(heard))
    return {"labels": wanted, "outputs": said, "wer": jiwer.wer(wanted, said), "cer": jiwer.cer(wanted, said)}


def boxes() -> dict[str, object]:
    """Images with up to five boxes of three classes, and what was found: moved, of another class, or where none is."""
    labels = np.full((30, 5, 5), -1.0)
    outputs = np.zeros((30, 8, 6))
    for there, found in zip(labels, outputs, strict=True):
        for at in range(DICE.integers(0, 6)):
            corner, size = DICE.integers(0, 60, 2), DICE.integers(10, 40, 2)
            kind = DICE.integers(0, 3)
            there[at] = [*corner, *(corner + size), kind]
            moved = np.concatenate([corner, corner + size]) + DICE.integers(-5, 6, 4)
            score = round(float(DICE.uniform(0.05, 1.0)), 2)
            found[at] = [*moved, score, kind if DICE.random() < 0.8 else DICE.integers(0, 3)]
        for at in range(5, 5 + DICE.integers(0, 4)):
            corner, size = DICE.integers(0, 60, 2), DICE.integers(10, 40, 2)
            score = round(float(DICE.uniform(0.05, 0.8)), 2)
            found[at] = [*corner, *(corner + size), score, DICE.integers(0, 3)]
    return {"labels": labels.tolist(), "outputs": outputs.tolist(), "map50": of_pycocotools(labels, outputs)}


def of_pycocotools(labels: np.ndarray, outputs: np.ndarray) -> float:
    """Its AP at an overlap of a half, over all areas."""
    truth = COCO()
    named = [(image, row) for image, there in enumerate(labels) for row in there.tolist() if row[4] >= 0]
    truth.dataset = {
        "images": [{"id": image} for image in range(len(labels))],
        "categories": [{"id": kind} for kind in range(3)],
        "annotations": [
            {"id": number, "image_id": image, "category_id": int(row[4]), "iscrowd": 0, **box(row)}
            for number, (image, row) in enumerate(named, 1)
        ],
    }
    truth.createIndex()
    found = truth.loadRes(
        [
            {"image_id": image, "category_id": int(row[5]), "score": row[4], "bbox": box(row)["bbox"]}
            for image, rows in enumerate(outputs)
            for row in rows.tolist()
            if row[4] > 0
        ]
    )
    judged = COCOeval(truth, found, "bbox")
    judged.evaluate()
    judged.accumulate()
    precision = judged.eval["precision"][0, :, :, 0, 2]
    return float(precision[precision > -1].mean())


def box(row: list[float]) -> dict[str, object]:
    width, height = row[2] - row[0], row[3] - row[1]
    return {"bbox": [row[0], row[1], width, height], "area": width * height}


if __name__ == "__main__":
    made = {"jiwer": version("jiwer"), "pycocotools": version("pycocotools"), "texts": texts(), "boxes": boxes()}
    Path(__file__).with_name("accuracies.json").write_text(json.dumps(made, separators=(",", ":")) + "\n")
