"""A third stranger's models by torch and torchvision: speech, pillars, keypoints, inpainting, flow, poses."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from tests.bench.exported.builders import Builders

BUILDERS = builder = Builders(torch_seed=3)


def export(model: Any, args: Any, path: Path, names: list[str], outputs: list[str], axes: Any, opset: int) -> None:
    torch.onnx.export(
        model.eval(),
        args,
        str(path),
        input_names=names,
        output_names=outputs,
        dynamic_axes=axes,
        opset_version=opset,
        dynamo=False,
    )


@builder
def ts_conformer_ctc(path: Path) -> None:
    wide = 64

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2, self.norm3 = nn.LayerNorm(wide), nn.LayerNorm(wide), nn.LayerNorm(wide)
            self.qkv, self.out = nn.Linear(wide, 3 * wide), nn.Linear(wide, wide)
            self.point, self.depth = nn.Conv1d(wide, 2 * wide, 1), nn.Conv1d(wide, wide, 9, padding=4, groups=wide)
            self.feed = nn.Sequential(nn.Linear(wide, 4 * wide), nn.SiLU(), nn.Linear(4 * wide, wide))

        def forward(self, x: Any, pad: Any) -> Any:
            batch, time, _ = x.shape
            q, k, v = self.qkv(self.norm1(x)).view(batch, time, 3, 4, 16).permute(2, 0, 3, 1, 4)
            scores = torch.matmul(q, k.transpose(2, 3)) / 4
            scores = scores.masked_fill(pad[:, None, None], -1e4).softmax(-1)
            x = x + self.out(torch.matmul(scores, v).transpose(1, 2).reshape(batch, time, wide))
            y = functional.glu(self.point(self.norm2(x).transpose(1, 2)), 1).masked_fill(pad[:, None], 0.0)
            x = x + self.depth(y).transpose(1, 2)
            return x + self.feed(self.norm3(x))

    class Recogniser(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cut = nn.Sequential(nn.Conv2d(1, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 16, 3, 2, 1), nn.ReLU())
            self.into = nn.Linear(16 * 20, wide)
            self.blocks = nn.ModuleList(Block() for _ in range(2))
            self.head = nn.Linear(wide, 129)

        def forward(self, audio_signal: Any, length: Any) -> Any:
            x = self.cut(audio_signal.transpose(1, 2)[:, None])
            x = self.into(x.transpose(1, 2).flatten(2))
            length = ((length - 1) // 2) // 2 + 1
            pad = torch.arange(x.shape[1])[None] >= length[:, None]
            for block in self.blocks:
                x = block(x, pad)
            return functional.log_softmax(self.head(x), -1), length

    args = (torch.randn(2, 80, 300), torch.tensor([300, 220]))
    axes = {"audio_signal": [0, 2], "length": [0], "logprobs": [0, 1], "encoded_lengths": [0]}
    export(Recogniser(), args, path, ["audio_signal", "length"], ["logprobs", "encoded_lengths"], axes, 17)


@builder
def ts_pointpillars(path: Path) -> None:
    rows, columns = 128, 96

    class Pillars(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.norm = nn.Linear(10, 32, bias=False), nn.BatchNorm1d(32)
            self.down = nn.Sequential(nn.Conv2d(32, 32, 3, 2, 1), nn.ReLU(), nn.Conv2d(32, 32, 3, 1, 1), nn.ReLU())
            self.up = nn.ConvTranspose2d(32, 32, 2, 2)
            self.scores, self.boxes = nn.Conv2d(32, 6, 1), nn.Conv2d(32, 14, 1)

        def forward(self, voxels: Any, num_points: Any, coords: Any) -> Any:
            mean = voxels[:, :, :3].sum(1, keepdim=True) / num_points.float()[:, None, None]
            places = coords[:, [3, 2, 1]].float() * torch.tensor([0.16, 0.16, 4.0]) + torch.tensor([0.08, -39.6, -1.0])
            x = torch.cat([voxels, voxels[:, :, :3] - mean, voxels[:, :, :3] - places[:, None]], 2)
            real = torch.arange(32)[None] < num_points[:, None]
            x = self.linear(x * real[:, :, None].float())
            x = torch.relu(self.norm(x.transpose(1, 2)).transpose(1, 2)).max(1)[0]
            where = (coords[:, 1] + coords[:, 2] * columns + coords[:, 3]).long()
            canvas = torch.zeros(32, rows * columns)
            canvas[:, where] = x.t()
            y = self.up(self.down(canvas.view(1, 32, rows, columns)))
            return self.scores(y), self.boxes(y)

    many = 200
    places = torch.stack([torch.zeros(many), torch.zeros(many), torch.arange(many) % 128, torch.arange(many) % 96], 1)
    args = (torch.randn(many, 32, 4), torch.randint(1, 33, (many,), dtype=torch.int32), places.int())
    pillars = {0: "voxels_num"}
    names = ["voxels", "num_points", "coords"]
    export(Pillars(), args, path, names, ["scores", "boxes"], dict.fromkeys(names, pillars), 11)


@builder
def dyn_lightglue_fp16(path: Path) -> None:
    wide = 64

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv, self.out = nn.Linear(wide, 3 * wide), nn.Linear(wide, wide)
            self.q, self.kv, self.merge = nn.Linear(wide, wide), nn.Linear(wide, 2 * wide), nn.Linear(wide, wide)

        def turned(self, x: Any, places: Any) -> Any:
            a, b = x.chunk(2, -1)
            return x * places.cos() + torch.cat([-b, a], -1) * places.sin()

        def heads(self, x: Any) -> Any:
            return x.unflatten(-1, (4, 16)).transpose(1, 2)

        def own(self, x: Any, places: Any) -> Any:
            q, k, v = (self.heads(part) for part in self.qkv(x).chunk(3, -1))
            q, k = self.turned(q, places), self.turned(k, places)
            return x + self.out(functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))

        def other(self, x: Any, y: Any) -> Any:
            k, v = (self.heads(part) for part in self.kv(y).chunk(2, -1))
            seen = functional.scaled_dot_product_attention(self.heads(self.q(x)), k, v)
            return x + self.merge(seen.transpose(1, 2).flatten(2))

        def forward(self, x: Any, y: Any, at_x: Any, at_y: Any) -> Any:
            x, y = self.own(x, at_x), self.own(y, at_y)
            return self.other(x, y), self.other(y, x)

    class Matcher(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.places = nn.Linear(2, 16, bias=False)
            self.layers = nn.ModuleList(Layer() for _ in range(3))
            self.last, self.match = nn.Linear(wide, wide), nn.Linear(wide, 1)

        def forward(self, kpts0: Any, kpts1: Any, desc0: Any, desc1: Any) -> Any:
            at0, at1 = self.places(kpts0)[:, None], self.places(kpts1)[:, None]
            for layer in self.layers:
                desc0, desc1 = layer(desc0, desc1, at0, at1)
            scores = torch.matmul(self.last(desc0), self.last(desc1).transpose(1, 2)) / 8
            sure = functional.logsigmoid(self.match(desc0)) + functional.logsigmoid(self.match(desc1)).transpose(1, 2)
            scores = functional.log_softmax(scores, 2) + functional.log_softmax(scores, 1) + sure
            best, matches = scores.max(2)
            return matches, best.exp()

    zero, one = {1: torch.export.Dim("num_keypoints0")}, {1: torch.export.Dim("num_keypoints1")}
    sizes = ((1, 70, 2), (1, 90, 2), (1, 70, wide), (1, 90, wide))
    torch.onnx.export(
        Matcher().eval().half(),
        tuple(torch.randn(size).half() for size in sizes),
        str(path),
        input_names=["kpts0", "kpts1", "desc0", "desc1"],
        output_names=["matches0", "mscores0"],
        dynamic_shapes=(zero, one, zero, one),
        dynamo=True,
        external_data=False,
    )


@builder
def ts_inpainting(path: Path) -> None:
    def gated(wide: int, out: int, stride: int = 1, far: int = 1) -> Any:
        return nn.Sequential(nn.Conv2d(wide, 2 * out, 3, stride, far, far), nn.GLU(1))

    class Inpainter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.down = nn.Sequential(gated(4, 16), gated(16, 24, 2), gated(24, 32, 2), gated(32, 48, 2))
            self.middle = nn.Sequential(gated(48, 48, far=2), gated(48, 48, far=4), gated(48, 48, far=8))
            self.up = nn.Sequential(
                nn.ConvTranspose2d(48, 32, 4, 2, 1),
                nn.ReLU(),
                nn.ConvTranspose2d(32, 24, 4, 2, 1),
                nn.ReLU(),
                nn.ConvTranspose2d(24, 16, 4, 2, 1),
                nn.ReLU(),
                nn.Conv2d(16, 3, 3, 1, 1),
                nn.Sigmoid(),
            )

        def forward(self, image: Any, mask: Any) -> Any:
            kept = image * (1 - mask)
            x = self.up(self.middle(self.down(torch.cat([kept, mask], 1))))
            return kept + x * mask

    sides = {2: "height", 3: "width"}
    axes = dict.fromkeys(("image", "mask", "output"), sides)
    args = (torch.rand(1, 3, 128, 128), (torch.rand(1, 1, 128, 128) > 0.5).float())
    export(Inpainter(), args, path, ["image", "mask"], ["output"], axes, 16)


@builder
def dyn_trajectories(path: Path) -> None:
    class Trajectories(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, norm_first=True)
            self.into, self.head = nn.Linear(8, 64), nn.Linear(64, 24)
            self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

        def forward(self, src: Any, src_key_padding_mask: Any) -> Any:
            hidden = self.encoder(self.into(src), src_key_padding_mask=src_key_padding_mask)
            return self.head(hidden).unflatten(-1, (12, 2))

    torch.backends.mha.set_fastpath_enabled(False)
    kinds = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    padding = torch.arange(15)[None] >= torch.tensor([15, 9])[:, None]
    torch.onnx.export(
        Trajectories().eval(),
        (torch.randn(2, 15, 8), padding),
        str(path),
        input_names=["src", "src_key_padding_mask"],
        output_names=["trajectories"],
        dynamic_shapes=(kinds, kinds),
        dynamo=True,
        external_data=False,
    )


@builder
def tv_raft(path: Path) -> None:
    from torchvision.models.optical_flow import raft_small

    class Flow(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = raft_small(weights=None)

        def forward(self, image1: Any, image2: Any) -> Any:
            return self.net(image1, image2, num_flow_updates=4)[-1]

    names = ["image1", "image2"]
    axes = {key: {0: "batch", 2: "height", 3: "width"} for key in (*names, "flow")}
    args = (torch.rand(1, 3, 128, 160) * 2 - 1, torch.rand(1, 3, 128, 160) * 2 - 1)
    export(Flow(), args, path, names, ["flow"], axes, 16)


@builder
def tv_keypoint_rcnn(path: Path) -> None:
    from torchvision.models.detection import KeypointRCNN
    from torchvision.models.detection.backbone_utils import mobilenet_backbone
    from torchvision.models.detection.faster_rcnn import TwoMLPHead
    from torchvision.models.detection.keypoint_rcnn import KeypointRCNNHeads, KeypointRCNNPredictor
    from torchvision.models.detection.rpn import AnchorGenerator

    backbone = mobilenet_backbone(
        backbone_name="mobilenet_v3_small", weights=None, fpn=True, trainable_layers=6, returned_layers=[2, 3]
    )
    model = KeypointRCNN(
        backbone,
        num_classes=None,
        num_keypoints=None,
        min_size=320,
        max_size=640,
        box_head=TwoMLPHead(backbone.out_channels * 49, 64),
        box_predictor=_predictor(64),
        keypoint_head=KeypointRCNNHeads(backbone.out_channels, (64, 64)),
        keypoint_predictor=KeypointRCNNPredictor(64, 17),
        rpn_anchor_generator=AnchorGenerator(((32, 64),) * 3, ((0.5, 1.0, 2.0),) * 3),
        rpn_pre_nms_top_n_test=100,
        rpn_post_nms_top_n_test=50,
    )
    axes = {"image": {1: "height", 2: "width"}}
    outputs = ["boxes", "labels", "scores", "keypoints", "keypoints_scores"]
    export(model, ([torch.rand(3, 320, 400)],), path, ["image"], outputs, axes, 11)


def _predictor(wide: int) -> Any:
    from torchvision.models.detection.faster_rcnn import FastRCNNPredictor

    return FastRCNNPredictor(wide, 2)
