"""Trains the digit classifier in plain numpy and writes `digits.npz`: `python -m tests.models.train_digits`.

Data: scikit-learn's digits set, a development dependency. About half a minute on one core. The committed file is the
outcome of one such run; another machine's rounding gives other weights, which is why they are committed.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from farm.workshop import arrays
from farm.workshop.arrays import Array
from farm.workshop.samples.digits import CLASSES, COMMITTED, CONVOLUTIONS, FLAT, HIDDEN, make_images

Floats = NDArray[np.float32]
Weights = dict[str, Floats]

_SEED = 7
_EVALUATION = 540
_CALIBRATION = 512
_EPOCHS = 30
_BATCH = 32
_RATE = 2e-3


def main() -> None:
    """Splits, trains, writes, and prints the accuracy on the pictures held back."""
    from sklearn.datasets import load_digits

    pixels, labels = (np.asarray(part) for part in load_digits(return_X_y=True))
    random = np.random.RandomState(_SEED)
    order = random.permutation(len(labels))
    held, learnt = order[:_EVALUATION], order[_EVALUATION:]
    weights = _train(make_images(pixels[learnt].astype(np.uint8)), labels[learnt], random=random)
    rounded = {name: value.astype(np.float16) for name, value in weights.items()}
    stored: dict[str, Array] = {
        **rounded,
        "evaluation_pixels": pixels[held].astype(np.uint8),
        "evaluation_labels": labels[held].astype(np.uint8),
        "calibration_pixels": pixels[learnt[:_CALIBRATION]].astype(np.uint8),
    }
    arrays.write_npz(COMMITTED, stored)
    scores = _forward({k: v.astype(np.float32) for k, v in rounded.items()}, make_images(stored["evaluation_pixels"]))[
        -1
    ]
    print(f"top-1 on {_EVALUATION} pictures held back: {np.mean(scores.argmax(1) == labels[held]):.4f}")


def _train(x: Floats, labels: Array, *, random: np.random.RandomState) -> Weights:
    """Adam on the cross entropy, with pictures shifted by up to one pixel."""
    weights = _start(random)
    first = {name: np.zeros_like(value) for name, value in weights.items()}
    second = {name: np.zeros_like(value) for name, value in weights.items()}
    for step, (picked, rate) in enumerate(_batches(len(x), random=random), start=1):
        slopes = _slopes(weights, _shifted(x[picked], random=random), labels[picked])
        for name, slope in slopes.items():
            first[name] += 0.1 * (slope - first[name])
            second[name] += 0.001 * (slope * slope - second[name])
            mean, spread = first[name] / (1 - 0.9**step), second[name] / (1 - 0.999**step)
            weights[name] -= np.float32(rate) * mean / (np.sqrt(spread) + np.float32(1e-8))
    return weights


def _start(random: np.random.RandomState) -> Weights:
    weights: Weights = {}
    for name, outputs, inputs, _ in CONVOLUTIONS:
        spread = np.sqrt(2 / (9 * inputs))
        weights[f"{name}_weight"] = (random.randn(outputs, inputs, 3, 3) * spread).astype(np.float32)
        weights[f"{name}_bias"] = np.zeros(outputs, dtype=np.float32)
    for name, rows, columns in (("hidden", FLAT, HIDDEN), ("scores", HIDDEN, CLASSES)):
        weights[f"{name}_weight"] = (random.randn(rows, columns) * np.sqrt(2 / rows)).astype(np.float32)
        weights[f"{name}_bias"] = np.zeros(columns, dtype=np.float32)
    return weights


def _batches(count: int, *, random: np.random.RandomState) -> Iterator[tuple[Array, float]]:
    for epoch in range(_EPOCHS):
        order = random.permutation(count)
        for at in range(0, count, _BATCH):
            yield order[at : at + _BATCH], _RATE * (1 - epoch / _EPOCHS)


def _shifted(x: Floats, *, random: np.random.RandomState) -> Floats:
    down, right = random.randint(-1, 2, size=2)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    return padded[:, :, 1 + down : 9 + down, 1 + right : 9 + right]


def _columns(x: Floats, stride: int) -> Floats:
    """Patches of 3 × 3 around each place: [n, c, h, w] → [n, h', w', c × 9]."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))[:, :, ::stride, ::stride]
    n, c, height, width = windows.shape[:4]
    return np.ascontiguousarray(windows.transpose(0, 2, 3, 1, 4, 5)).reshape(n, height, width, c * 9)


def _forward(weights: Weights, x: Floats) -> list[Floats]:
    """The activations after each layer; the last are the scores."""
    kept = [x]
    for name, outputs, _, stride in CONVOLUTIONS:
        kernel = weights[f"{name}_weight"].reshape(outputs, -1).T
        product = _columns(kept[-1], stride) @ kernel + weights[f"{name}_bias"]
        kept.append(np.maximum(product, 0).transpose(0, 3, 1, 2))
    flat = kept[-1].reshape(len(x), -1)
    kept.append(np.maximum(flat @ weights["hidden_weight"] + weights["hidden_bias"], 0))
    kept.append(kept[-1] @ weights["scores_weight"] + weights["scores_bias"])
    return kept


def _slopes(weights: Weights, x: Floats, labels: Array) -> Weights:
    """The gradient of the mean cross entropy."""
    kept = _forward(weights, x)
    shares = np.exp(kept[-1] - kept[-1].max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    shares[np.arange(len(x)), labels] -= 1
    slope = shares / np.float32(len(x))
    slopes: Weights = {}
    for name, given in (("scores", kept[-2]), ("hidden", kept[-3].reshape(len(x), -1))):
        slopes[f"{name}_weight"], slopes[f"{name}_bias"] = given.T @ slope, slope.sum(0)
        slope = (slope @ weights[f"{name}_weight"].T) * (given > 0)
    slope = slope.reshape(kept[-3].shape)
    for at in reversed(range(len(CONVOLUTIONS))):
        name, outputs, _, stride = CONVOLUTIONS[at]
        flat = slope.transpose(0, 2, 3, 1).reshape(-1, outputs)
        patches = _columns(kept[at], stride)
        slopes[f"{name}_weight"] = (flat.T @ patches.reshape(len(flat), -1)).reshape(weights[f"{name}_weight"].shape)
        slopes[f"{name}_bias"] = flat.sum(0)
        back = (flat @ weights[f"{name}_weight"].reshape(outputs, -1)).reshape(patches.shape)
        slope = _spread_back(back, kept[at].shape, stride) * (kept[at] > 0)
    return slopes


def _spread_back(patches: Floats, shape: tuple[int, ...], stride: int) -> Floats:
    """The transpose of `_columns`: every patch is added where it was taken."""
    n, c, height, width = shape
    rows, columns = patches.shape[1:3]
    parts = patches.reshape(n, rows, columns, c, 3, 3).transpose(0, 3, 4, 5, 1, 2)
    total = np.zeros((n, c, height + 2, width + 2), dtype=np.float32)
    for down in range(3):
        for right in range(3):
            ends = down + stride * rows, right + stride * columns
            total[:, :, down : ends[0] : stride, right : ends[1] : stride] += parts[:, :, down, right]
    return total[:, :, 1:-1, 1:-1]


if __name__ == "__main__":
    main()
