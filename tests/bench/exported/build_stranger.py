"""A stranger's models by torch: torchvision's, a forecaster, a graph network, fp16, QDQ int8, opset 12."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process
from torch import nn
from torchvision.models import shufflenet_v2_x0_5
from torchvision.models.detection import ssdlite320_mobilenet_v3_large
from torchvision.models.segmentation import lraspp_mobilenet_v3_large

from tests.bench.exported.builders import Builders

BUILDERS = builder = Builders()


def export(model: Any, args: Any, path: Path, axes: dict[str, Any], outputs: list[str], **options: Any) -> None:
    """By the TorchScript exporter, as most users' scripts call it; `axes` names every input, in order."""
    torch.onnx.export(
        model.eval() if hasattr(model, "eval") else model,
        args,
        str(path),
        input_names=[name for name in axes if name not in outputs],
        output_names=outputs,
        dynamic_axes=axes,
        **{"opset_version": 17, "dynamo": False, **options},
    )


@builder
def torch_classifier_any_size(path: Path) -> None:
    torch.manual_seed(1)
    axes = {"input": {0: "batch", 2: "height", 3: "width"}, "logits": {0: "batch"}}
    export(shufflenet_v2_x0_5(num_classes=50), (torch.randn(1, 3, 224, 224),), path, axes, ["logits"])


@builder
def torch_segmentation(path: Path) -> None:
    class Mask(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = lraspp_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=6)

        def forward(self, image: Any) -> Any:
            return self.model(image)["out"]

    torch.manual_seed(6)
    sizes = {0: "N", 2: "H", 3: "W"}
    export(Mask(), (torch.randn(1, 3, 256, 256),), path, {"image": sizes, "mask": sizes}, ["mask"])


@builder
def torch_detection(path: Path) -> None:
    torch.manual_seed(7)
    model = ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=6, detections_per_img=20)
    found = {"boxes": {0: "detections"}, "scores": {0: "detections"}, "labels": {0: "detections"}}
    axes = {"image": {1: "height", 2: "width"}, **found}
    export(model, ([torch.rand(3, 320, 480)],), path, axes, list(found))


@builder
def torch_forecast(path: Path) -> None:
    class Forecaster(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.store, self.family, self.city = nn.Embedding(54, 8), nn.Embedding(33, 8), nn.Embedding(22, 8)
            self.encode = nn.LSTM(7 + 4, 32, batch_first=True)
            self.decode = nn.Sequential(nn.Linear(4 + 32 + 24, 64), nn.GELU(), nn.Linear(64, 3))

        def forward(self, values: Any, times: Any, future: Any, static: Any) -> Any:
            _, (hidden, _) = self.encode(torch.cat([values, times], -1))
            tables = (self.store, self.family, self.city)
            static = torch.cat([table(static[:, column]) for column, table in enumerate(tables)], -1)
            known = torch.cat([hidden[-1], static], -1)[:, None].expand(-1, future.shape[1], -1)
            return self.decode(torch.cat([future, known], -1))

    torch.manual_seed(8)
    any_size = torch.export.Dim.DYNAMIC
    rows = {0: any_size}
    series = {0: any_size, 1: any_size}
    torch.onnx.export(
        Forecaster().eval(),
        (torch.randn(2, 60, 7), torch.randn(2, 60, 4), torch.randn(2, 14, 4), torch.randint(0, 20, (2, 3))),
        str(path),
        input_names=["past_values", "past_time_features", "future_time_features", "static_categories"],
        output_names=["quantiles"],
        dynamic_shapes=(series, series, series, rows),
        dynamo=True,
        external_data=False,
    )


@builder
def torch_graph(path: Path) -> None:
    class Layer(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.message, self.update = nn.Linear(width + 4, 32), nn.Linear(width + 32, 32)

        def forward(self, x: Any, edges: Any, attributes: Any) -> Any:
            messages = torch.relu(self.message(torch.cat([x.index_select(0, edges[0]), attributes], -1)))
            summed = torch.zeros(x.shape[0], 32).index_add(0, edges[1], messages)
            return torch.relu(self.update(torch.cat([x, summed], -1)))

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second, self.head = Layer(16), Layer(32), nn.Linear(32, 5)

        def forward(self, x: Any, edge_index: Any, edge_attr: Any) -> Any:
            return self.head(self.second(self.first(x, edge_index, edge_attr), edge_index, edge_attr))

    torch.manual_seed(9)
    nodes, edges = torch.export.Dim("num_nodes"), torch.export.Dim("num_edges")
    torch.onnx.export(
        Network().eval(),
        (torch.randn(30, 16), torch.randint(0, 30, (2, 90)), torch.randn(90, 4)),
        str(path),
        input_names=["x", "edge_index", "edge_attr"],
        output_names=["classes"],
        dynamic_shapes=({0: nodes}, {1: edges}, {0: edges}),
        dynamo=True,
        external_data=False,
    )


def latent_unet() -> Any:
    """Three levels of convolutions with skips, attention over the text in the middle, as diffusion models have them."""

    class Unet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.time = nn.Sequential(nn.Linear(32, 32), nn.SiLU(), nn.Linear(32, 32))
            self.first = nn.Conv2d(4, 32, 3, padding=1)
            self.down = nn.ModuleList(nn.Conv2d(32, 32, 3, stride=2, padding=1) for _ in range(2))
            self.text, self.attend = nn.Linear(64, 32), nn.MultiheadAttention(32, 4, batch_first=True)
            self.up = nn.ModuleList(nn.Conv2d(64, 32, 3, padding=1) for _ in range(2))
            self.last = nn.Conv2d(32, 4, 3, padding=1)

        def forward(self, sample: Any, timestep: Any, text: Any) -> Any:
            angles = timestep[:, None].to(sample.dtype) * torch.exp(-torch.arange(16) / 2.0).to(sample.dtype)[None]
            time = self.time(torch.cat([angles.sin(), angles.cos()], -1))
            levels = [self.first(sample) + time[:, :, None, None]]
            for down in self.down:
                levels.append(nn.functional.silu(down(levels[-1])))
            x = levels.pop()
            pixels = x.flatten(2).transpose(1, 2)
            words = self.text(text)
            x = x + self.attend(pixels, words, words)[0].transpose(1, 2).reshape(x.shape)
            for up in self.up:
                x = nn.functional.silu(up(torch.cat([nn.functional.interpolate(x, scale_factor=2.0), levels.pop()], 1)))
            return self.last(x)

    return Unet()


@builder
def torch_diffusion_fp16(path: Path) -> None:
    torch.manual_seed(10)
    pixels = {0: "batch", 2: "height", 3: "width"}
    axes = {
        "sample": pixels,
        "timestep": {0: "batch"},
        "encoder_hidden_states": {0: "batch", 1: "sequence"},
        "out_sample": pixels,
    }
    half = {"dtype": torch.float16}
    args = (torch.randn(2, 4, 32, 32, **half), torch.tensor([10, 700]), torch.randn(2, 77, 64, **half))
    export(latent_unet().half(), args, path, axes, ["out_sample"])


@builder
def ort_keywords_qdq(path: Path) -> None:
    class Mels(CalibrationDataReader):
        def __init__(self) -> None:
            random = np.random.default_rng(11)
            self.left = [random.standard_normal((1, 1, 40, 98)).astype(np.float32) for _ in range(8)]

        def get_next(self) -> Any:
            return {"mel": self.left.pop()} if self.left else None

    class Keywords(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.convolve = nn.Sequential(
                nn.Conv2d(1, 16, (5, 5), stride=(2, 2), padding=2),
                nn.BatchNorm2d(16),
                nn.ReLU(),
                nn.Conv2d(16, 32, 3, stride=(2, 2), padding=1),
                nn.BatchNorm2d(32),
                nn.ReLU(),
            )
            self.frames, self.head = nn.Linear(32 * 10, 64), nn.Linear(64, 12)

        def forward(self, mel: Any) -> Any:
            x = self.convolve(mel)
            x = torch.relu(self.frames(x.permute(0, 3, 1, 2).flatten(2)))
            return self.head(x.mean(1))

    torch.manual_seed(11)
    axes = {"mel": {0: "batch", 3: "frames"}, "keywords": {0: "batch"}}
    plain = path.with_name("plain.onnx")
    export(Keywords(), (torch.randn(1, 1, 40, 98),), plain, axes, ["keywords"])
    quant_pre_process(str(plain), str(plain))
    signed = QuantType.QInt8
    quantize_static(
        str(plain), str(path), Mels(), quant_format=QuantFormat.QDQ, activation_type=signed, weight_type=signed
    )
    plain.unlink()


@builder
def torch_ocr_opset12(path: Path) -> None:
    class Reader(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            blocks: list[nn.Module] = []
            for before, after, pool in ((1, 16, (2, 2)), (16, 32, (2, 2)), (32, 64, (2, 1)), (64, 64, (4, 1))):
                blocks += [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(), nn.MaxPool2d(pool)]
            self.convolve = nn.Sequential(*blocks)
            self.read, self.head = nn.LSTM(64, 48, bidirectional=True), nn.Linear(96, 37)

        def forward(self, image: Any) -> Any:
            x = self.convolve(image).squeeze(2).permute(2, 0, 1)
            return self.head(self.read(x)[0]).log_softmax(-1)

    torch.manual_seed(12)
    axes = {"image": {0: "batch_size", 3: "width"}, "letters": {0: "steps", 1: "batch_size"}}
    export(Reader(), (torch.randn(1, 1, 32, 128),), path, axes, ["letters"], opset_version=12)


class VoiceActivity(nn.Module):
    """Keeps a state between windows; which filters it takes depends on the sampling rate that it is fed."""

    def __init__(self) -> None:
        super().__init__()
        self.wide, self.narrow = nn.Conv1d(1, 32, 256, stride=128), nn.Conv1d(1, 32, 128, stride=64)
        self.memory, self.head = nn.LSTM(32, 64), nn.Linear(64, 1)

    def forward(self, input: torch.Tensor, state: torch.Tensor, sr: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        window = input.unsqueeze(1)
        bands = self.wide(window) if sr == 16000 else self.narrow(window)
        steps = torch.relu(bands).permute(2, 0, 1)
        out, (hidden, cell) = self.memory(steps, (state[0:1], state[1:2]))
        return torch.sigmoid(self.head(out[-1])), torch.cat([hidden, cell])


@builder
def torch_voice_activity(path: Path) -> None:

    torch.manual_seed(14)
    axes = {
        "input": {0: "batch", 1: "samples"},
        "state": {1: "batch"},
        "sr": {},
        "speech": {0: "batch"},
        "new_state": {1: "batch"},
    }
    args = (torch.randn(1, 512), torch.zeros(2, 1, 64), torch.tensor(16000))
    export(torch.jit.script(VoiceActivity().eval()), args, path, axes, ["speech", "new_state"])
