"""A stranger's models by transformers, small and with random weights, exported by hand as users' scripts do."""

from pathlib import Path
from typing import Any

import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    DynamicCache,
    GPT2Config,
    GPT2LMHeadModel,
    MarianConfig,
    MarianMTModel,
    SiglipConfig,
    SiglipModel,
    Wav2Vec2Config,
    Wav2Vec2ForCTC,
)

from tests.bench.exported.build_stranger import export
from tests.bench.exported.builders import Builders

BUILDERS = builder = Builders()


@builder
def torch_bert_dynamo(path: Path) -> None:
    torch.manual_seed(2)
    config = BertConfig(
        vocab_size=1000,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=128,
        max_position_embeddings=128,
        num_labels=3,
        return_dict=False,
        attn_implementation="eager",
    )
    ids = torch.randint(0, 1000, (2, 24))
    kinds = {0: torch.export.Dim("batch_size"), 1: torch.export.Dim("sequence_length", max=128)}
    names = ["input_ids", "attention_mask", "token_type_ids"]
    torch.onnx.export(
        BertForSequenceClassification(config).eval(),
        (),
        str(path),
        kwargs={"input_ids": ids, "attention_mask": torch.ones_like(ids), "token_type_ids": torch.zeros_like(ids)},
        input_names=names,
        output_names=["logits"],
        dynamic_shapes=dict.fromkeys(names, kinds),
        dynamo=True,
        external_data=False,
    )


@builder
def torch_gpt2_past(path: Path) -> None:
    class Step(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = GPT2LMHeadModel(
                GPT2Config(vocab_size=800, n_positions=512, n_embd=64, n_layer=2, n_head=4, attn_implementation="eager")
            )

        def forward(self, input_ids: Any, attention_mask: Any, position_ids: Any, *past: Any) -> Any:
            cache = DynamicCache.from_legacy_cache(tuple((past[2 * layer], past[2 * layer + 1]) for layer in range(2)))
            out = self.model(
                input_ids=input_ids,
                attention_mask=attention_mask,
                position_ids=position_ids,
                past_key_values=cache,
                use_cache=True,
            )
            return out.logits, *(part for layer in out.past_key_values.to_legacy_cache() for part in layer)

    torch.manual_seed(3)
    parts = [f"{layer}.{part}" for layer in range(2) for part in ("key", "value")]
    tokens = {0: "batch", 1: "new_tokens"}
    torch.onnx.export(
        Step().eval(),
        (
            torch.randint(0, 800, (2, 3)),
            torch.ones(2, 9, dtype=torch.int64),
            torch.arange(6, 9).expand(2, 3).contiguous(),
            *(torch.randn(2, 4, 6, 16) for _ in parts),
        ),
        str(path),
        input_names=["input_ids", "attention_mask", "position_ids", *(f"past.{part}" for part in parts)],
        output_names=["logits", *(f"present.{part}" for part in parts)],
        dynamic_shapes=(tokens, {0: "batch", 1: "total"}, tokens, tuple({0: "batch", 2: "past_length"} for _ in parts)),
        dynamo=True,
        external_data=False,
    )


@builder
def torch_speech_ctc(path: Path) -> None:
    torch.manual_seed(4)
    config = Wav2Vec2Config(
        vocab_size=40,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=128,
        conv_dim=(32,) * 7,
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=4,
        return_dict=False,
        attn_implementation="eager",
    )
    axes = {"waveform": {0: "batch", 1: "audio_length"}, "logits": {0: "batch", 1: "frames"}}
    export(Wav2Vec2ForCTC(config), (torch.randn(1, 16000),), path, axes, ["logits"])


@builder
def torch_text_image(path: Path) -> None:
    class Both(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            small = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
            text = {**small, "vocab_size": 500, "max_position_embeddings": 64, "projection_size": 64}
            config = SiglipConfig(text_config=text, vision_config={**small, "image_size": 96, "patch_size": 16})
            config._attn_implementation = "eager"
            self.model = SiglipModel(config)

        def forward(self, input_ids: Any, pixel_values: Any) -> Any:
            out = self.model(input_ids=input_ids, pixel_values=pixel_values)
            return out.logits_per_image, out.text_embeds, out.image_embeds

    torch.manual_seed(5)
    axes = {
        "input_ids": {0: "num_texts", 1: "sequence"},
        "pixel_values": {0: "num_images"},
        "logits_per_image": {0: "num_images", 1: "num_texts"},
        "text_embeds": {0: "num_texts"},
        "image_embeds": {0: "num_images"},
    }
    args = (torch.randint(0, 500, (2, 16)), torch.randn(3, 3, 96, 96))
    export(Both(), args, path, axes, ["logits_per_image", "text_embeds", "image_embeds"])


@builder
def torch_translation(path: Path) -> None:
    class Translator(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            sides = {
                f"{side}_{part}": size
                for side in ("encoder", "decoder")
                for part, size in (("layers", 2), ("attention_heads", 4), ("ffn_dim", 128))
            }
            tokens = {"pad_token_id": 599, "eos_token_id": 0, "forced_eos_token_id": 0, "decoder_start_token_id": 599}
            config = MarianConfig(vocab_size=600, d_model=64, max_position_embeddings=256, **sides, **tokens)
            config._attn_implementation = "eager"
            self.model = MarianMTModel(config)

        def forward(self, input_ids: Any, attention_mask: Any, decoder_input_ids: Any) -> Any:
            return self.model(
                input_ids=input_ids,
                attention_mask=attention_mask,
                decoder_input_ids=decoder_input_ids,
                use_cache=False,
            ).logits

    torch.manual_seed(13)
    source, target = {0: "batch", 1: "source_length"}, {0: "batch", 1: "target_length"}
    axes = {"input_ids": source, "attention_mask": source, "decoder_input_ids": target, "logits": target}
    ids = torch.randint(0, 599, (2, 20))
    export(Translator(), (ids, torch.ones_like(ids), torch.randint(0, 599, (2, 7))), path, axes, ["logits"])
