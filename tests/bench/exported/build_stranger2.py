"""The twenty models of `stranger2.toml`, small and with random weights, by the exporters that are installed.

DIR/bin/python -m tests.bench.exported.build_stranger2 OUT [NAME…]
"""
# ruff: noqa: PLC0415  (each exporter lives in an environment of its own)

import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

try:
    import torch
    from torch import nn
    from torch.nn import functional as F
except ImportError:  # the environments of Keras and JAX
    torch = None  # type: ignore[assignment]

BUILDERS: dict[str, Callable[[Path], None]] = {}


def builder(build: Callable[[Path], None]) -> Callable[[Path], None]:
    BUILDERS[build.__name__] = build
    return build


def export(model: Any, args: Any, path: Path, axes: dict[str, Any], outputs: list[str], **options: Any) -> None:
    """By the TorchScript exporter; `axes` names every input in order, static ones with {}."""
    names = [name for name in axes if name not in outputs]
    dynamic = {name: named for name, named in axes.items() if named}
    kinds: dict[str, Any] = {"opset_version": 17, "dynamo": False, **options}
    torch.onnx.export(
        model.eval(), args, str(path), input_names=names, output_names=outputs, dynamic_axes=dynamic, **kinds
    )


SMALL = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}


@builder
def hf_xlmr_embedding(path: Path) -> None:
    from transformers import XLMRobertaConfig, XLMRobertaModel

    class Embedding(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            config = XLMRobertaConfig(
                vocab_size=1200, max_position_embeddings=130, type_vocab_size=1, attn_implementation="eager", **SMALL
            )
            self.model = XLMRobertaModel(config, add_pooling_layer=False)

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            hidden = self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
            mask = attention_mask.unsqueeze(-1).to(hidden.dtype)
            return F.normalize((hidden * mask).sum(1) / mask.sum(1).clamp(min=1e-9), dim=1)

    ids = torch.randint(5, 1200, (2, 20))
    kinds = {0: torch.export.Dim("batch"), 1: torch.export.Dim("seq_len", max=128)}
    torch.onnx.export(
        Embedding().eval(),
        (ids, torch.ones_like(ids)),
        str(path),
        input_names=["input_ids", "attention_mask"],
        output_names=["sentence_embedding"],
        dynamic_shapes=(kinds, kinds),
        dynamo=True,
        external_data=False,
    )


@builder
def hf_llama_past(path: Path) -> None:
    from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

    class Step(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = LlamaForCausalLM(
                LlamaConfig(
                    vocab_size=900,
                    num_key_value_heads=2,
                    max_position_embeddings=1024,
                    attn_implementation="eager",
                    **SMALL,
                )
            )

        def forward(self, input_ids: Any, attention_mask: Any, position_ids: Any, *past: Any) -> Any:
            cache = DynamicCache.from_legacy_cache(((past[0], past[1]), (past[2], past[3])))
            keys = torch.arange(attention_mask.shape[1])[None, None, None]
            allowed = (keys <= position_ids[:, None, :, None]) & attention_mask[:, None, None].bool()
            mask = torch.where(allowed, 0.0, -1e9)
            out = self.model(
                input_ids=input_ids, attention_mask=mask, position_ids=position_ids, past_key_values=cache, use_cache=True
            )
            return out.logits, *(part for layer in out.past_key_values.to_legacy_cache() for part in layer)

    parts = [f"{layer}.{part}" for layer in range(2) for part in ("key", "value")]
    tokens = {0: "batch_size", 1: "sequence_length"}
    axes = {
        "input_ids": tokens,
        "attention_mask": {0: "batch_size", 1: "past_sequence_length + sequence_length"},
        "position_ids": tokens,
        **{f"past_key_values.{part}": {0: "batch_size", 2: "past_sequence_length"} for part in parts},
    }
    args = (
        torch.randint(0, 900, (2, 3)),
        torch.ones(2, 9, dtype=torch.int64),
        torch.arange(6, 9).expand(2, 3).contiguous(),
        *(torch.randn(2, 2, 6, 16) for _ in parts),
    )
    export(Step(), args, path, axes, ["logits", *(f"present.{part}" for part in parts)])


@builder
def hf_bart_decoder_past(path: Path) -> None:
    from transformers import BartConfig, BartForConditionalGeneration, DynamicCache, EncoderDecoderCache

    class Step(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            config = BartConfig(
                vocab_size=700,
                d_model=64,
                encoder_layers=1,
                decoder_layers=1,
                encoder_attention_heads=4,
                decoder_attention_heads=4,
                encoder_ffn_dim=128,
                decoder_ffn_dim=128,
                max_position_embeddings=256,
                attn_implementation="eager",
            )
            whole = BartForConditionalGeneration(config)
            self.decoder, self.head = whole.model.decoder, whole.lm_head

        def forward(self, encoder_attention_mask: Any, input_ids: Any, *past: Any) -> Any:
            cache = EncoderDecoderCache(
                DynamicCache.from_legacy_cache(((past[0], past[1]),)),
                DynamicCache.from_legacy_cache(((past[2], past[3]),)),
            )
            cache.is_updated[0] = True
            batch, length = encoder_attention_mask.shape
            out = self.decoder(
                input_ids=input_ids,
                attention_mask=torch.zeros(batch, 1, 1, past[0].shape[2] + 1),
                encoder_hidden_states=torch.zeros(batch, length, 64),
                encoder_attention_mask=encoder_attention_mask,
                past_key_values=cache,
                cache_position=torch.ones(1, dtype=torch.int64) * past[0].shape[2],
                use_cache=True,
            )
            own = out.past_key_values.self_attention_cache.to_legacy_cache()[0]
            return self.head(out.last_hidden_state), *own

    named, of_past, of_encoder = {0: "batch_size"}, "past_decoder_sequence_length", "encoder_sequence_length"
    axes: dict[str, Any] = {"encoder_attention_mask": {**named, 1: of_encoder}, "input_ids": named}
    for side, length in (("decoder", of_past), ("encoder", of_encoder)):
        for part in ("key", "value"):
            axes[f"past_key_values.0.{side}.{part}"] = {**named, 2: length}
    args = (
        torch.ones(2, 11, dtype=torch.int64),
        torch.randint(0, 700, (2, 1)),
        *(torch.randn(2, 4, 5, 16) for _ in range(2)),
        *(torch.randn(2, 4, 11, 16) for _ in range(2)),
    )
    export(Step(), args, path, axes, ["logits", "present.0.decoder.key", "present.0.decoder.value"])


@builder
def hf_layoutlm(path: Path) -> None:
    from transformers import LayoutLMConfig, LayoutLMForTokenClassification

    config = LayoutLMConfig(
        vocab_size=1000,
        max_position_embeddings=128,
        max_2d_position_embeddings=1024,
        num_labels=5,
        return_dict=False,
        attn_implementation="eager",
        **SMALL,
    )
    ids, kinds = torch.randint(0, 1000, (2, 20)), {0: "batch", 1: "sequence"}
    boxes = torch.cat([torch.randint(0, 400, (2, 20, 2)), torch.randint(400, 1000, (2, 20, 2))], 2)
    axes = dict.fromkeys(("input_ids", "bbox", "attention_mask", "token_type_ids", "logits"), kinds)
    args = (ids, boxes, torch.ones_like(ids), torch.zeros_like(ids))
    export(LayoutLMForTokenClassification(config), args, path, axes, ["logits"])


@builder
def hf_clipseg(path: Path) -> None:
    from transformers import CLIPSegConfig, CLIPSegForImageSegmentation

    text = {**SMALL, "vocab_size": 600, "max_position_embeddings": 32, "eos_token_id": 599, "bos_token_id": 598}
    config = CLIPSegConfig(
        text_config=text,
        vision_config={**SMALL, "image_size": 96, "patch_size": 16},
        projection_dim=32,
        extract_layers=[0, 1],
        reduce_dim=16,
        decoder_num_attention_heads=2,
        decoder_intermediate_size=32,
        conditional_layer=0,
        attn_implementation="eager",
    )

    class Mask(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = CLIPSegForImageSegmentation(config)

        def forward(self, input_ids: Any, pixel_values: Any, attention_mask: Any) -> Any:
            return self.model(input_ids=input_ids, pixel_values=pixel_values, attention_mask=attention_mask).logits

    ids, tokens = torch.randint(0, 598, (2, 12)), {0: "batch_size", 1: "sequence_length"}
    axes = {
        "input_ids": tokens,
        "pixel_values": {0: "batch_size", 1: "num_channels", 2: "height", 3: "width"},
        "attention_mask": tokens,
        "logits": {0: "batch_size"},
    }
    export(Mask(), (ids, torch.randn(2, 3, 96, 96), torch.ones_like(ids)), path, axes, ["logits"])


@builder
def hf_hifigan(path: Path) -> None:
    from transformers import SpeechT5HifiGan, SpeechT5HifiGanConfig

    config = SpeechT5HifiGanConfig(upsample_initial_channel=64)
    axes = {"spectrogram": {0: "batch_size", 1: "sequence_length"}, "waveform": {0: "batch_size", 1: "n_samples"}}
    export(SpeechT5HifiGan(config), (torch.randn(2, 40, 80),), path, axes, ["waveform"])


@builder
def hf_dinov2_fp16(path: Path) -> None:
    from transformers import Dinov2Config, Dinov2Model

    class Features(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            heads = {name: SMALL[name] for name in ("hidden_size", "num_hidden_layers", "num_attention_heads")}
            self.model = Dinov2Model(Dinov2Config(image_size=112, patch_size=14, attn_implementation="eager", **heads))

        def forward(self, pixel_values: Any) -> Any:
            return self.model(pixel_values).last_hidden_state

    axes = {"pixel_values": {0: "batch_size", 1: "num_channels", 2: "height", 3: "width"}}
    axes["last_hidden_state"] = {0: "batch_size", 1: "sequence_length"}
    export(Features().half(), (torch.randn(2, 3, 112, 112).half(),), path, axes, ["last_hidden_state"])


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
            n4 = self.n4(torch.cat([F.interpolate(p5, scale_factor=2.0), p4], 1))
            n3 = self.n3(torch.cat([F.interpolate(n4, scale_factor=2.0), p3], 1))
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
            b = self.b(F.max_pool3d(a, 2))
            c = self.c(F.max_pool3d(b, 2))
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
            return self.net(F.interpolate(x, size=(128, 128), mode="bilinear"))

    plain = path.with_name("plain.onnx")
    axes = {"frame": {0: "batch", 1: "height", 2: "width"}, "classes": {0: "batch"}}
    frame = torch.randint(0, 256, (1, 480, 640, 3), dtype=torch.uint8)
    export(Camera(), (frame,), plain, axes, ["classes"])

    class Frames(CalibrationDataReader):  # type: ignore[misc]
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
            whole = F.interpolate(low, size=(1024, 1024), mode="bilinear", align_corners=False)
            prepadded = torch.floor(size * (1024 / torch.max(size)) + 0.5).to(torch.int64)
            whole = whole[..., : prepadded[0], : prepadded[1]]
            to = size.to(torch.int64)
            return F.interpolate(whole, size=(to[0], to[1]), mode="bilinear"), self.score(hidden[:, 0]), low

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
            path_of = (frames < ends[:, 0, None]).float() - (frames < F.pad(ends, (1, 0))[:, 0, None, :-1]).float()
            spoken = torch.matmul(x, path_of.transpose(1, 2))
            return torch.tanh(self.decode(spoken + torch.randn_like(spoken) * scales[0]))[:, None]

    axes: dict[str, Any] = {"input": {0: "batch_size", 1: "phonemes"}, "input_lengths": {0: "batch_size"}, "scales": {}}
    axes["output"] = {0: "batch_size", 3: "time"}
    args = (torch.randint(0, 130, (1, 50)), torch.tensor([50]), torch.tensor([0.667, 1.0, 0.8]))
    export(Voice(), args, path, axes, ["output"], opset_version=15)


@builder
def sk_strings(path: Path) -> None:
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import StringTensorType
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder

    random = np.random.default_rng(0)
    words = (["red", "green", "blue"], ["small", "large"], ["paper", "metal", "glass", "wood"])
    rows = np.stack([random.choice(column, 300) for column in words], 1).astype(object)
    model = make_pipeline(OrdinalEncoder(), RandomForestClassifier(20, max_depth=5, random_state=0))
    model.fit(rows, random.integers(0, 3, 300))
    onnx = to_onnx(model, initial_types=[("fields", StringTensorType([None, 3]))])
    path.write_bytes(onnx.SerializeToString())


@builder
def sk_anomaly(path: Path) -> None:
    from skl2onnx import to_onnx
    from sklearn.ensemble import IsolationForest
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rows = np.random.default_rng(0).normal(size=(300, 9)).astype(np.float32)
    model = make_pipeline(StandardScaler(), IsolationForest(n_estimators=30, random_state=0)).fit(rows)
    path.write_bytes(to_onnx(model, rows[:1], target_opset={"": 18, "ai.onnx.ml": 3}).SerializeToString())


@builder
def keras_unet(path: Path) -> None:
    import tensorflow as tf
    import tf2onnx
    from tensorflow import keras

    np.object = object  # type: ignore[attr-defined]  # tf2onnx still says it
    layers = keras.layers
    image = keras.Input((None, None, 3), name="image")
    levels, x = [], image
    for wide in (8, 16, 32):
        x = layers.Conv2D(wide, 3, padding="same", activation="relu")(x)
        levels.append(x)
        x = layers.MaxPooling2D()(x)
    for wide, level in zip((32, 16, 8), reversed(levels), strict=True):
        x = layers.Conv2DTranspose(wide, 2, strides=2, padding="same")(x)
        x = layers.Conv2D(wide, 3, padding="same", activation="relu")(layers.Concatenate()([x, level]))
    model = keras.Model(image, layers.Conv2D(1, 1, activation="sigmoid")(x))
    specs = [tf.TensorSpec([None, None, None, 3], tf.float32, name="image")]
    call = tf.function(lambda image: model(image), input_signature=specs)
    proto, _ = tf2onnx.convert.from_function(call, input_signature=specs, opset=13)
    path.write_bytes(proto.SerializeToString())


@builder
def jax_tags(path: Path) -> None:
    import jax
    import jax.numpy as jnp
    from flax import nnx
    from jax2onnx import to_onnx

    class Tags(nnx.Module):
        def __init__(self, rngs: Any) -> None:
            self.embed, self.places = nnx.Embed(500, 32, rngs=rngs), nnx.Embed(32, 32, rngs=rngs)
            self.attend = nnx.MultiHeadAttention(4, 32, 32, rngs=rngs, decode=False)
            self.norm, self.head = nnx.LayerNorm(32, rngs=rngs), nnx.Linear(32, 9, rngs=rngs)

        def __call__(self, ids: Any) -> Any:
            x = self.embed(ids) + self.places(jnp.arange(32))
            return self.head(jax.nn.gelu(self.norm(x + self.attend(x))))

    inputs = [jax.ShapeDtypeStruct(("B", 32), jnp.int32)]
    to_onnx(Tags(nnx.Rngs(0)), inputs, return_mode="file", output_path=str(path))


def main() -> None:
    out, *names = sys.argv[1:]
    for name in names or BUILDERS:
        path = Path(out) / name / "model.onnx"
        if path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        if torch:
            torch.manual_seed(1)
        try:
            BUILDERS[name](path)
            print(f"{name}: {path.stat().st_size:,} bytes", flush=True)
        except Exception:
            print(f"{name}: not written", traceback.format_exc(limit=-3), flush=True)


if __name__ == "__main__":
    main()
