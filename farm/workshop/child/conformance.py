"""Writes the ONNX package's backend node tests as a suite that a runner without `onnx` can run.

The tests come from `onnx.backend.test.loader.load_node_model_tests`. Only tests with plain tensors are taken: arrays of
a dtype that numpy itself has. Tests with sequences, optionals, maps, bfloat16, float8 or 4-bit types count as left out.
"""

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from farm.workshop import arrays
from farm.workshop.arrays import Array

if TYPE_CHECKING:
    from onnx.backend.test.case.test_case import TestCase

# object arrays hold strings in ONNX's tests
PLAIN_KINDS = "biufcUSO"


def write_suite(folder: str) -> dict[str, int]:
    """Write one folder for each test case below `folder`, and return the numbers of `cases` and `left_out`.

    A case holds `model.onnx`, `data_N.npz` (arrays `in.<input>`, `out.<output>`) and `tolerance.json`. Raises
    FileExistsError if a case's folder exists already.
    """
    from onnx.backend.test.loader import load_node_model_tests

    with warnings.catch_warnings():
        # the package computes its expected outputs with numpy, overflow and division by zero included
        warnings.simplefilter("ignore", RuntimeWarning)
        tests = load_node_model_tests()
    written = 0
    for test in tests:
        arrays = [array for ports in test.data_sets or () for side in ports for array in side]
        if test.data_sets is not None and all(map(_is_plain_array, arrays)):
            _write_case(Path(folder) / test.name, test)
            written += 1
    return {"cases": written, "left_out": len(tests) - written}


def _is_plain_array(array: object) -> bool:
    if not isinstance(array, np.ndarray | np.generic):
        return False
    dtype = np.asarray(array).dtype
    return dtype.kind in PLAIN_KINDS and dtype.isbuiltin == 1


def _write_case(folder: Path, test: "TestCase") -> None:
    assert test.model is not None
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(test.model.SerializeToString())
    (folder / "tolerance.json").write_text(json.dumps({"rtol": test.rtol, "atol": test.atol}))
    initializers = {initializer.name for initializer in test.model.graph.initializer}
    inputs = [value.name for value in test.model.graph.input if value.name not in initializers]
    outputs = [value.name for value in test.model.graph.output]
    for number, (input_arrays, output_arrays) in enumerate(test.data_sets or ()):
        stored = {f"in.{name}": _make_storable(array) for name, array in zip(inputs, input_arrays, strict=False)}
        stored |= {f"out.{name}": _make_storable(array) for name, array in zip(outputs, output_arrays, strict=False)}
        arrays.write_npz(folder / f"data_{number}.npz", stored)


def _make_storable(array: ArrayLike) -> Array:
    value = np.asarray(array)
    # an .npz without pickles holds strings as fixed-width text
    return value.astype(str) if value.dtype.kind == "O" else value
