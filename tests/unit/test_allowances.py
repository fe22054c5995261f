"""Packages beyond the known distributions: said by `check` where an admin allows some."""

from typing import Any

import pytest
from django.core.checks import run_checks

from farm.rules.runtimes.distributions import RuntimeProblem, read_names


def test_a_farm_that_allows_packages_says_so_in_check(settings: Any) -> None:
    settings.ALLOWED_PACKAGES = read_names("my-ort,onnxruntime_training")
    (said,) = [one for one in run_checks() if one.id == "onnxfarm.I002"]
    assert "my-ort, onnxruntime-training" in said.msg
    assert not said.is_serious(), "an admin's choice is no mistake"


def test_a_farm_allows_no_package_unless_it_is_told(settings: Any) -> None:
    assert not settings.ALLOWED_PACKAGES
    assert not [one for one in run_checks() if one.id == "onnxfarm.I002"]


def test_an_allowance_that_is_no_name_stops_the_farm_from_starting() -> None:
    with pytest.raises(RuntimeProblem):
        read_names("https://evil.example/a.whl")
