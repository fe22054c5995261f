# acme_onnxfarm.py
from farm.rules.runtimes.provider import Plugin, Provider, Signs

ENTRY = Provider(
    name="AcmeExecutionProvider",  # as ONNX Runtime calls it
    short="acme",
    device="npu",
    tag="acme",
    needs="an Acme card whose driver answers",
    plugins=(
        Plugin("acme-ep", library="acme_ep:library_path", releases=("1.0",), core="1.30.0", beside=">=1.29,<1.31"),
    ),
    options=frozenset({"speed"}),
    defaults={"speed": "2"},
    probe_with="acme-ep==1.0",
    signs=Signs(files=("/dev/acme[0-9]*",)),
)
