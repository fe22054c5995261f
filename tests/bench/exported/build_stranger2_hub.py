"""A second stranger's models by transformers, small and with random weights, exported by hand."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from tests.bench.exported.build_stranger2 import export
from tests.bench.exported.builders import Builders

BUILDERS = builder = Builders(torch_seed=1)


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
            return functional.normalize((hidden * mask).sum(1) / mask.sum(1).clamp(min=1e-9), dim=1)

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
                input_ids=input_ids,
                attention_mask=mask,
                position_ids=position_ids,
                past_key_values=cache,
                use_cache=True,
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
