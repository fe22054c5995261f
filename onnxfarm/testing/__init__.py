"""Stand-ins for those who write around onnxfarm, and for its own tests: nothing here imports the server.

`FakeFarm` speaks to nodes, `FakeNode` to farms, both over real HTTP; `FakeRuntime` is an environment in which the real
runner measures times that were said beforehand; `Clock` passes when it is told to. docs/extending.md shows each.
"""

from onnxfarm.testing.clock import Clock as Clock
from onnxfarm.testing.farm import FakeFarm as FakeFarm
from onnxfarm.testing.node import FakeNode as FakeNode
from onnxfarm.testing.runtime import FakeRuntime as FakeRuntime
from onnxfarm.testing.runtime import Step as Step
