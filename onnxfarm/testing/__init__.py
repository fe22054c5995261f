"""Test doubles for programs that use onnxfarm, and for its own tests. Nothing here imports the server.

`FakeFarm` serves nodes and `FakeNode` uses a farm, both over real HTTP. `FakeRuntime` is an environment in which the
real runner measures times that the test sets. `Clock` advances only when a test says so. docs/extending.md shows each.
"""

from onnxfarm.testing.clock import Clock as Clock
from onnxfarm.testing.farm import FakeFarm as FakeFarm
from onnxfarm.testing.node import FakeNode as FakeNode
from onnxfarm.testing.runtime import FakeRuntime as FakeRuntime
from onnxfarm.testing.runtime import Step as Step
