"""Small models with random weights by PyTorch's own two exporters, TorchScript's and dynamo's, and by torchvision."""

import warnings
from pathlib import Path
from typing import Any

import torch
import torchvision
from torch import nn

from tests.bench.exported.builders import Builders

Shapes = dict[str, dict[int, str]]
BUILDERS = builder = Builders()
F = nn.functional


def script(path: Path, model: nn.Module, feed: tuple[Any, ...], names: list[str], axes: Shapes | None = None) -> None:
    """By TorchScript's exporter, as most tutorials do."""
    torch.manual_seed(0)
    torch.onnx.export(
        model.eval(), feed, path, input_names=names, output_names=["output"], dynamic_axes=axes, dynamo=False,
        opset_version=17,
    )  # fmt: skip


def dynamo(path: Path, model: nn.Module, feed: tuple[Any, ...], shapes: Any = None, **named: Any) -> None:
    """By the exporter of torch.export; it names dimensions s0, s1, … where nobody does."""
    torch.onnx.export(model.eval(), feed, path, dynamic_shapes=shapes, dynamo=True, external_data=False, **named)


class Tokens(nn.Module):
    """A small encoder of token ids; with places of its own."""

    def __init__(self, words: int = 1000, longest: int = 128) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, 32), nn.Embedding(longest, 32)
        self.layer = nn.TransformerEncoderLayer(32, 2, 64, batch_first=True)
        self.head = nn.Linear(32, 4)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        x = self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        return self.head(self.layer(x * mask.unsqueeze(-1)).mean(1))


class Recurrent(nn.Module):
    def __init__(self, *, first: bool) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(20, 16, batch_first=first), nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.lstm(x)[0])


class Carried(nn.Module):
    """A voice detector's step: a frame, and the states it carries on."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(40, 24)

    def forward(self, frames: torch.Tensor, hidden: torch.Tensor) -> Any:
        return self.gru(frames, hidden)


class Denoiser(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inside, self.out = nn.Conv2d(4, 32, 3, padding=1), nn.Conv2d(32, 4, 3, padding=1)
        self.time, self.text = nn.Linear(1, 32), nn.Linear(48, 32)

    def forward(self, sample: torch.Tensor, timestep: torch.Tensor, encoder_hidden_states: torch.Tensor) -> Any:
        x = self.inside(sample) + self.time(timestep.float().reshape(-1, 1))[:, :, None, None]
        return self.out(F.silu(x + self.text(encoder_hidden_states).mean(1)[:, :, None, None]))


class Recommender(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.users, self.items = nn.Embedding(500, 16), nn.Embedding(3000, 16)
        self.dense = nn.Linear(13, 16)

    def forward(self, user_id: torch.Tensor, item_id: torch.Tensor, dense: torch.Tensor) -> torch.Tensor:
        return (self.users(user_id) * self.items(item_id) * self.dense(dense)).sum(-1)


class Graph(nn.Module):
    """Two rounds of messages between nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(16, 32), nn.Linear(32, 7)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        for layer in (self.one, self.two):
            h = layer(x)
            x = torch.zeros_like(h).index_add(0, edge_index[1], h[edge_index[0]])
        return x


class Points(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Conv1d(3, 64, 1), nn.Linear(64, 10)

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(points).amax(-1))


class Towers(nn.Module):
    """An image and a text by their own encoders, as CLIP has them."""

    def __init__(self) -> None:
        super().__init__()
        self.image, self.text = nn.Conv2d(3, 32, 16, 16), nn.Embedding(900, 32)

    def forward(self, image: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
        return self.image(image).flatten(2).mean(-1) @ self.text(text).mean(1).T


class Split(nn.Module):
    """Heads split by a reshape to fixed sizes, so that its features follow only through the reshape."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Linear(24, 24)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length = x.shape[:2]
        return self.mix(x.reshape(batch, length, 8, 24)).reshape(batch, length, 192)


def audio() -> nn.Module:
    return nn.Sequential(nn.Conv1d(1, 32, 10, 5), nn.ReLU(), nn.Conv1d(32, 32, 8, 4), nn.ReLU(), nn.Conv1d(32, 8, 4, 2))


def tabular(width: int = 30) -> nn.Module:
    return nn.Sequential(nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, 3))


def images(channels: int = 3) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(channels, 16, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5)
    )


EVERY = {0: "batch", 1: "channels", 2: "height", 3: "width"}


@builder
def vision_squeezenet(path: Path) -> None:
    script(
        path,
        torchvision.models.squeezenet1_1(),
        (torch.randn(1, 3, 224, 224),),
        ["input"],
        {"input": {0: "batch_size"}},
    )


@builder
def vision_mobilenet_fixed(path: Path) -> None:
    script(path, torchvision.models.mobilenet_v3_small(), (torch.randn(1, 3, 224, 224),), ["input"])


@builder
def vision_shufflenet_every(path: Path) -> None:
    script(path, torchvision.models.shufflenet_v2_x0_5(), (torch.randn(1, 3, 224, 224),), ["images"], {"images": EVERY})


@builder
def vision_lraspp_sides(path: Path) -> None:
    model = torchvision.models.segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None)
    script(path, Only(model), (torch.randn(1, 3, 256, 256),), ["input"], {"input": {0: "N", 2: "H", 3: "W"}})


class Only(nn.Module):
    """The map alone of a torchvision model that answers a dictionary."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.model(x)["out"]


@builder
def vision_vit_small(path: Path) -> None:
    model = torchvision.models.VisionTransformer(64, 16, 2, 2, 32, 64, num_classes=10)
    script(path, model, (torch.randn(1, 3, 64, 64),), ["pixels"], {"pixels": EVERY})


@builder
def vision_detector_chw(path: Path) -> None:
    """torchvision's detectors take a list of pictures, so that each is channels × height × width."""
    model = torchvision.models.detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None)
    script(path, model, ([torch.randn(3, 320, 320)],), ["image"], {"image": {1: "height", 2: "width"}})


@builder
def vision_efficientnet_dynamo(path: Path) -> None:
    model = torchvision.models.mnasnet0_5()
    dynamo(path, model, (torch.randn(2, 3, 224, 224),), ({0: torch.export.Dim("batch")},))


@builder
def vision_video(path: Path) -> None:
    model = nn.Sequential(nn.Conv3d(3, 8, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(8, 4))
    axes = {0: "batch", 1: "channels", 2: "frames", 3: "height", 4: "width"}
    script(path, model, (torch.randn(1, 3, 16, 112, 112),), ["clip"], {"clip": axes})


@builder
def script_tokens(path: Path) -> None:
    ids, mask = torch.randint(0, 1000, (1, 16)), torch.ones(1, 16)
    axes = {name: {0: "batch", 1: "sequence"} for name in ("input_ids", "attention_mask")}
    script(path, Tokens(), (ids, mask), ["input_ids", "attention_mask"], axes)


@builder
def script_tokens_unnamed(path: Path) -> None:
    ids, mask = torch.randint(0, 1000, (1, 16)), torch.ones(1, 16)
    script(path, Tokens(), (ids, mask), ["x", "y"], {"x": {0: "d0", 1: "d1"}, "y": {0: "d0", 1: "d1"}})


@builder
def script_lstm_first(path: Path) -> None:
    axes = {"x": {0: "batch_size", 1: "seq_len", 2: "features"}}
    script(path, Recurrent(first=True), (torch.randn(1, 30, 20),), ["x"], axes)


@builder
def script_lstm_time(path: Path) -> None:
    script(path, Recurrent(first=False), (torch.randn(30, 1, 20),), ["x"], {"x": {0: "time", 1: "batch"}})


@builder
def script_gru_state(path: Path) -> None:
    axes = {"frames": {0: "time", 1: "batch"}, "hidden": {1: "batch"}}
    script(path, Carried(), (torch.randn(10, 1, 40), torch.zeros(1, 1, 24)), ["frames", "hidden"], axes)


@builder
def script_audio(path: Path) -> None:
    axes = {"waveform": {0: "batch", 2: "samples"}}
    script(path, audio(), (torch.randn(1, 1, 16000),), ["waveform"], axes)


@builder
def script_spectrogram(path: Path) -> None:
    model = nn.Sequential(nn.Conv1d(80, 32, 3, 2, 1), nn.ReLU(), nn.Conv1d(32, 29, 3, 1, 1))
    axes = {"mel": {0: "batch", 1: "n_mels", 2: "frames"}}
    script(path, model, (torch.randn(1, 80, 300),), ["mel"], axes)


@builder
def script_tabular_every(path: Path) -> None:
    script(path, tabular(), (torch.randn(1, 30),), ["features"], {"features": {0: "rows", 1: "num_features"}})


@builder
def script_denoiser(path: Path) -> None:
    names = ["sample", "timestep", "encoder_hidden_states"]
    feed = (torch.randn(2, 4, 32, 32), torch.tensor([1.0, 1.0]), torch.randn(2, 77, 48))
    axes = {
        "sample": {0: "batch", 1: "num_channels", 2: "height", 3: "width"},
        "timestep": {0: "batch"},
        "encoder_hidden_states": {0: "batch", 1: "sequence_length", 2: "text_width"},
    }
    script(path, Denoiser(), feed, names, axes)


@builder
def script_recommender(path: Path) -> None:
    feed = (torch.randint(0, 500, (4,)), torch.randint(0, 3000, (4,)), torch.randn(4, 13))
    names = ["user_id", "item_id", "dense"]
    script(path, Recommender(), feed, names, {name: {0: "batch"} for name in names})


@builder
def script_graph(path: Path) -> None:
    feed = (torch.randn(50, 16), torch.randint(0, 50, (2, 200)))
    script(path, Graph(), feed, ["x", "edge_index"], {"x": {0: "num_nodes"}, "edge_index": {1: "num_edges"}})


@builder
def script_points(path: Path) -> None:
    axes = {"points": {0: "batch", 1: "coordinates", 2: "num_points"}}
    script(path, Points(), (torch.randn(1, 3, 1024),), ["points"], axes)


@builder
def script_towers(path: Path) -> None:
    axes = {
        "image": {0: "image_batch", 1: "num_channels", 2: "height", 3: "width"},
        "text": {0: "text_batch", 1: "length"},
    }
    script(path, Towers(), (torch.randn(1, 3, 64, 64), torch.randint(0, 900, (2, 12))), ["image", "text"], axes)


@builder
def script_split(path: Path) -> None:
    axes = {"hidden": {0: "batch", 1: "length", 2: "width"}}
    script(path, Split(), (torch.randn(2, 16, 192),), ["hidden"], axes)


@builder
def script_upscaler(path: Path) -> None:
    model = nn.Sequential(nn.Conv2d(1, 16, 5, 1, 2), nn.ReLU(), nn.Conv2d(16, 9, 3, 1, 1), nn.PixelShuffle(3))
    script(path, model, (torch.randn(1, 1, 100, 100),), ["low"], {"low": EVERY})


@builder
def script_generator(path: Path) -> None:
    model = nn.Sequential(
        nn.Linear(100, 256), nn.Unflatten(1, (16, 4, 4)), nn.ConvTranspose2d(16, 3, 4, 2, 1), nn.Tanh()
    )
    script(path, model, (torch.randn(1, 100),), ["z"], {"z": {0: "batch", 1: "latent"}})


@builder
def script_half(path: Path) -> None:
    script(path, images().half(), (torch.randn(1, 3, 64, 64).half(),), ["input"], {"input": EVERY})


@builder
def script_hyperspectral(path: Path) -> None:
    script(path, images(12), (torch.randn(1, 12, 128, 128),), ["input"], {"input": EVERY})


@builder
def dynamo_images(path: Path) -> None:
    auto = torch.export.Dim.DYNAMIC
    dynamo(path, images(), (torch.randn(2, 3, 96, 96),), ({0: auto, 2: auto, 3: auto},))


@builder
def dynamo_tokens(path: Path) -> None:
    auto = torch.export.Dim.DYNAMIC
    feed = (torch.randint(0, 1000, (2, 16)), torch.ones(2, 16))
    dynamo(path, Tokens(), feed, ({0: auto, 1: auto}, {0: auto, 1: auto}))


@builder
def dynamo_audio(path: Path) -> None:
    auto = torch.export.Dim.DYNAMIC
    dynamo(path, audio(), (torch.randn(2, 1, 16000),), ({0: auto, 2: auto},))


@builder
def dynamo_tabular(path: Path) -> None:
    dynamo(path, tabular(), (torch.randn(2, 30),), ({0: torch.export.Dim("batch")},))


@builder
def dynamo_bfloat16(path: Path) -> None:
    dynamo(
        path, tabular().to(torch.bfloat16), (torch.randn(2, 30).to(torch.bfloat16),), ({0: torch.export.Dim.DYNAMIC},)
    )


@builder
def dynamo_points(path: Path) -> None:
    auto = torch.export.Dim.DYNAMIC
    dynamo(path, Points(), (torch.randn(2, 3, 512),), ({0: auto, 2: auto},))


warnings.simplefilter("ignore")
