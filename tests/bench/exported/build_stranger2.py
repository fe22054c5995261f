"""A second stranger's models by torch: sound, sensors, pictures, scans, an embedding of clicks, prompts, speech."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from tests.bench.exported.builders import Builders

BUILDERS = builder = Builders(torch_seed=1)


def export(model: Any, args: Any, path: Path, axes: dict[str, Any], outputs: list[str], **options: Any) -> None:
    """By the TorchScript exporter; `axes` names every input in order, static ones with {}."""
    names = [name for name in axes if name not in outputs]
    dynamic = {name: named for name, named in axes.items() if named}
    kinds: dict[str, Any] = {"opset_version": 17, "dynamo": False, **options}
    torch.onnx.export(
        model.eval(), args, str(path), input_names=names, output_names=outputs, dynamic_axes=dynamic, **kinds
    )


@builder
def torch_denoiser(path: Path) -> None:
    class Denoiser(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encode, self.decode = nn.Conv1d(1, 64, 16, 8, bias=False), nn.ConvTranspose1d(64, 1, 16, 8, bias=False)
            self.blocks = nn.ModuleList(
                nn.Sequential(
                    nn.Conv1d(64, 32, 1),
                    nn.PReLU(),
                    nn.GroupNorm(1, 32),
                    nn.Conv1d(32, 32, 3, padding=step, dilation=step, groups=32),
                    nn.PReLU(),
                    nn.Conv1d(32, 64, 1),
                )
                for step in (1, 2, 4, 8)
            )

        def forward(self, waveform: Any) -> Any:
            coded = self.encode(waveform)
            hidden = coded
            for block in self.blocks:
                hidden = hidden + block(hidden)
            return self.decode(coded * torch.sigmoid(hidden))

    torch.onnx.export(
        Denoiser().eval(),
        (torch.randn(2, 1, 16000),),
        str(path),
        input_names=["waveform"],
        output_names=["clean"],
        dynamic_shapes=({0: "batch", 2: "samples"},),
        dynamo=True,
        external_data=False,
    )


@builder
def torch_lstm_states(path: Path) -> None:
    class Sensors(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.head = nn.LSTM(7, 32, 2, batch_first=True), nn.Linear(32, 7)

        def forward(self, x: Any, h0: Any, c0: Any) -> Any:
            y, (h, c) = self.lstm(x, (h0, c0))
            return self.head(y), h, c

    rows, states = {0: "batch", 1: "time"}, {1: "batch"}
    axes = {"x": rows, "h0": states, "c0": states, "y": rows, "hn": states, "cn": states}
    args = (torch.randn(2, 10, 7), torch.randn(2, 2, 32), torch.randn(2, 2, 32))
    export(Sensors(), args, path, axes, ["y", "hn", "cn"])


def conv(wide: int, out: int, stride: int = 1) -> Any:
    return nn.Sequential(nn.Conv2d(wide, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out), nn.SiLU())


@builder
def torch_yolo(path: Path) -> None:
    class Yolo(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Sequential(conv(3, 8, 2), conv(8, 16, 2), conv(16, 32, 2))
            self.p4, self.p5 = conv(32, 64, 2), conv(64, 64, 2)
            self.n4, self.n3 = conv(128, 32), conv(64, 32)
            self.heads = nn.ModuleList(nn.Conv2d(wide, 4 + 12, 1) for wide in (32, 32, 64))

        def forward(self, images: Any) -> Any:
            p3 = self.stem(images)
            p4 = self.p4(p3)
            p5 = self.p5(p4)
            n4 = self.n4(torch.cat([functional.interpolate(p5, scale_factor=2.0), p4], 1))
            n3 = self.n3(torch.cat([functional.interpolate(n4, scale_factor=2.0), p3], 1))
            found = [head(part).flatten(2) for head, part in zip(self.heads, (n3, n4, p5), strict=True)]
            boxes, scores = torch.cat(found, 2).split([4, 12], 1)
            return torch.cat([boxes, scores.sigmoid()], 1)

    axes = {"images": {0: "batch", 2: "height", 3: "width"}, "output0": {0: "batch", 2: "anchors"}}
    export(Yolo(), (torch.randn(1, 3, 320, 320),), path, axes, ["output0"])


@builder
def torch_unet3d(path: Path) -> None:
    class Unet(nn.Module):
        def __init__(self) -> None:
            super().__init__()

            def block(wide: int, out: int) -> Any:
                return nn.Sequential(nn.Conv3d(wide, out, 3, padding=1), nn.InstanceNorm3d(out), nn.LeakyReLU())

            self.a, self.b, self.c = block(2, 8), block(8, 16), block(16, 32)
            self.up_b, self.up_a = nn.ConvTranspose3d(32, 16, 2, 2), nn.ConvTranspose3d(16, 8, 2, 2)
            self.d, self.e, self.head = block(32, 16), block(16, 8), nn.Conv3d(8, 4, 1)

        def forward(self, volume: Any) -> Any:
            a = self.a(volume)
            b = self.b(functional.max_pool3d(a, 2))
            c = self.c(functional.max_pool3d(b, 2))
            b = self.d(torch.cat([self.up_b(c), b], 1))
            return self.head(self.e(torch.cat([self.up_a(b), a], 1)))

    sizes = {0: "batch", 2: "depth", 3: "height", 4: "width"}
    axes = {"volume": sizes, "segmentation": sizes}
    export(Unet(), (torch.randn(1, 2, 32, 32, 32),), path, axes, ["segmentation"], opset_version=11)


@builder
def torch_superres(path: Path) -> None:
    model = nn.Sequential(
        nn.Conv2d(1, 64, 5, 1, 2),
        nn.ReLU(),
        nn.Conv2d(64, 64, 3, 1, 1),
        nn.ReLU(),
        nn.Conv2d(64, 32, 3, 1, 1),
        nn.ReLU(),
        nn.Conv2d(32, 9, 3, 1, 1),
        nn.PixelShuffle(3),
    )
    axes = {"input": {0: "batch_size", 2: "height", 3: "width"}, "output": {0: "batch_size", 2: "h3", 3: "w3"}}
    export(model, (torch.randn(1, 1, 224, 224),), path, axes, ["output"], opset_version=10)


@builder
def torch_camera_qdq(path: Path) -> None:
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from torchvision.models import mobilenet_v2

    class Camera(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = mobilenet_v2(num_classes=20, width_mult=0.35)
            self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1))

        def forward(self, frame: Any) -> Any:
            x = (frame.permute(0, 3, 1, 2).float() / 255 - self.mean) / 0.225
            return self.net(functional.interpolate(x, size=(128, 128), mode="bilinear"))

    plain = path.with_name("plain.onnx")
    axes = {"frame": {0: "batch", 1: "height", 2: "width"}, "classes": {0: "batch"}}
    frame = torch.randint(0, 256, (1, 480, 640, 3), dtype=torch.uint8)
    export(Camera(), (frame,), plain, axes, ["classes"])

    class Frames(CalibrationDataReader):
        left = 3

        def get_next(self) -> Any:
            self.left -= 1
            return {"frame": frame.numpy()} if self.left else None

    quantize_static(
        str(plain),
        str(path),
        Frames(),
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        weight_type=QuantType.QInt8,
        op_types_to_quantize=["Conv", "Gemm", "Add"],
    )
    plain.unlink()


@builder
def torch_dlrm(path: Path) -> None:
    tables = (1000, 500, 50, 2000, 10, 3)

    class Dlrm(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tables = nn.ModuleList(nn.Embedding(rows, 16) for rows in tables)
            self.bottom = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU())
            self.top = nn.Sequential(nn.Linear(16 + 49, 32), nn.ReLU(), nn.Linear(32, 1), nn.Sigmoid())

        def forward(self, dense: Any, sparse: Any) -> Any:
            x = self.bottom(dense)
            parts = torch.stack([x, *(table(sparse[:, at]) for at, table in enumerate(self.tables))], 1)
            return self.top(torch.cat([x, torch.bmm(parts, parts.transpose(1, 2)).flatten(1)], 1))

    batch = {0: "batch_size"}
    sparse = torch.stack([torch.randint(0, rows, (4,)) for rows in tables], 1)
    axes = {"dense": batch, "sparse": batch, "click": batch}
    export(Dlrm(), (torch.rand(4, 13), sparse), path, axes, ["click"])


@builder
def torch_sam_decoder(path: Path) -> None:
    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("directions", torch.randn(2, 128))
            self.kinds, self.tokens = nn.Embedding(5, 256), nn.Parameter(torch.randn(1, 5, 256))
            self.masks, self.no_mask = nn.Conv2d(1, 256, 4, 4), nn.Parameter(torch.randn(1, 256, 1, 1))
            self.attend = nn.MultiheadAttention(256, 8, batch_first=True)
            self.up, self.hyper, self.score = nn.ConvTranspose2d(256, 32, 4, 4), nn.Linear(256, 32), nn.Linear(256, 4)

        def forward(self, embeddings: Any, coords: Any, labels: Any, mask: Any, has_mask: Any, size: Any) -> Any:
            angles = 2 * np.pi * ((2 * (coords + 0.5) / 1024 - 1) @ self.directions)
            points = torch.cat([angles.sin(), angles.cos()], -1) * (labels != -1)[..., None]
            for kind in range(-1, 4):
                points = points + self.kinds.weight[kind + 1] * (labels == kind)[..., None]
            image = embeddings + has_mask * self.masks(mask) + (1 - has_mask) * self.no_mask
            queries = torch.cat([self.tokens.expand(points.shape[0], -1, -1), points], 1)
            keys = image.flatten(2).transpose(1, 2)
            hidden = queries + self.attend(queries, keys, keys)[0]
            low = torch.einsum("bqc,bchw->bqhw", self.hyper(hidden[:, 1:5]), self.up(image))
            whole = functional.interpolate(low, size=(1024, 1024), mode="bilinear", align_corners=False)
            prepadded = torch.floor(size * (1024 / torch.max(size)) + 0.5).to(torch.int64)
            whole = whole[..., : prepadded[0], : prepadded[1]]
            to = size.to(torch.int64)
            return functional.interpolate(whole, size=(to[0], to[1]), mode="bilinear"), self.score(hidden[:, 0]), low

    args = (
        torch.randn(1, 256, 64, 64),
        torch.rand(1, 5, 2) * 1024,
        torch.randint(0, 4, (1, 5)).float(),
        torch.randn(1, 1, 256, 256),
        torch.tensor([1.0]),
        torch.tensor([1500.0, 2250.0]),
    )
    axes: dict[str, Any] = {"image_embeddings": {}, "point_coords": {1: "num_points"}}
    axes |= {"point_labels": {1: "num_points"}, "mask_input": {}, "has_mask_input": {}, "orig_im_size": {}}
    export(Decoder(), args, path, axes, ["masks", "iou_predictions", "low_res_masks"])


@builder
def torch_piper(path: Path) -> None:
    class Voice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.encode = nn.Embedding(130, 48), nn.Conv1d(48, 48, 5, padding=2)
            self.duration = nn.Conv1d(48, 1, 3, padding=1)
            self.decode = nn.Sequential(nn.ConvTranspose1d(48, 16, 16, 8, 4), nn.LeakyReLU(), nn.Conv1d(16, 1, 7, 1, 3))

        def forward(self, ids: Any, lengths: Any, scales: Any) -> Any:
            mask = (torch.arange(ids.shape[1])[None] < lengths[:, None])[:, None].float()
            x = torch.relu(self.encode(self.embed(ids).transpose(1, 2) * mask)) * mask
            noisy = self.duration(x) + torch.randn_like(x[:, :1]) * scales[2]
            ends = torch.cumsum(torch.ceil(torch.exp(noisy) * mask * scales[1]), -1)
            total = torch.clamp_min(ends[:, 0, -1].max(), 1).to(torch.int64)
            frames = torch.arange(total)[None, :, None]
            path_of = (frames < ends[:, 0, None]).float() - (
                frames < functional.pad(ends, (1, 0))[:, 0, None, :-1]
            ).float()
            spoken = torch.matmul(x, path_of.transpose(1, 2))
            return torch.tanh(self.decode(spoken + torch.randn_like(spoken) * scales[0]))[:, None]

    axes: dict[str, Any] = {"input": {0: "batch_size", 1: "phonemes"}, "input_lengths": {0: "batch_size"}, "scales": {}}
    axes["output"] = {0: "batch_size", 3: "time"}
    args = (torch.randint(0, 130, (1, 50)), torch.tensor([50]), torch.tensor([0.667, 1.0, 0.8]))
    export(Voice(), args, path, axes, ["output"], opset_version=15)
