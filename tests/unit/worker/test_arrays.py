import numpy as np
import pytest

from worker.runner.arrays import load_arrays, save_arrays
from worker.runner.faults import Refusal


def test_arrays_come_back_in_their_shapes_scalars_too(tmp_path):
    given = {"total": np.array(7, np.int64), "row": np.arange(3.0), "turned": np.arange(6).reshape(2, 3).T}
    path = str(tmp_path / "arrays.npz")
    save_arrays(path, given)

    found = load_arrays(path)

    assert {name: array.shape for name, array in found.items()} == {"total": (), "row": (3,), "turned": (3, 2)}
    assert all(np.array_equal(found[name], array) and found[name].flags.c_contiguous for name, array in given.items())


def test_a_file_that_is_no_archive_is_refused_in_a_sentence(tmp_path):
    path = tmp_path / "arrays.npz"
    path.write_bytes(b"PK\x03\x04 cut off")

    with pytest.raises(Refusal, match="cannot be read"):
        load_arrays(str(path))
