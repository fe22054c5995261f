"""A third stranger's models of transformers, random: by optimum from a folder with a configuration, or by hand."""

import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tests.bench.exported.build_stranger3 import export
from tests.bench.exported.builders import Builders

BUILDERS = builder = Builders(torch_seed=3)


SMALL = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}


def by_optimum(model: Any, task: str, path: Path, written: str = "model.onnx", **options: Any) -> None:
    from optimum.exporters.onnx import main_export

    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as out:
        model.save_pretrained(folder)
        main_export(folder, out, task=task, device="cpu", do_validation=False, library_name="transformers", **options)
        path.write_bytes((Path(out) / written).read_bytes())


@builder
def opt_falcon_past(path: Path) -> None:
    from transformers import FalconConfig, FalconForCausalLM

    config = FalconConfig(
        vocab_size=1000,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        multi_query=True,
        new_decoder_architecture=False,
        alibi=False,
        max_position_embeddings=2048,
        bos_token_id=1,
        eos_token_id=2,
    )
    by_optimum(FalconForCausalLM(config), "text-generation-with-past", path)


@builder
def opt_owlvit(path: Path) -> None:
    from transformers import OwlViTConfig, OwlViTForObjectDetection

    text = {**SMALL, "vocab_size": 600, "max_position_embeddings": 16, "bos_token_id": 598, "eos_token_id": 599}
    vision = {**SMALL, "image_size": 96, "patch_size": 16}
    config = OwlViTConfig(text_config=text, vision_config=vision, projection_dim=64)
    by_optimum(OwlViTForObjectDetection(config), "zero-shot-object-detection", path, batch_size=1)


@builder
def opt_ast(path: Path) -> None:
    from transformers import ASTConfig, ASTForAudioClassification

    config = ASTConfig(max_length=128, num_mel_bins=64, num_labels=20, **SMALL)
    by_optimum(ASTForAudioClassification(config), "audio-classification", path)


@builder
def opt_s2t_encoder(path: Path) -> None:
    from transformers import Speech2TextConfig, Speech2TextForConditionalGeneration

    config = Speech2TextConfig(
        vocab_size=400,
        encoder_layers=2,
        encoder_ffn_dim=128,
        encoder_attention_heads=4,
        decoder_layers=1,
        decoder_ffn_dim=128,
        decoder_attention_heads=4,
        d_model=64,
        max_source_positions=1024,
        max_target_positions=128,
        conv_channels=64,
        input_feat_per_channel=80,
    )
    model = Speech2TextForConditionalGeneration(config)
    by_optimum(model, "automatic-speech-recognition", path, "encoder_model.onnx")


@builder
def opt_deberta_reranker(path: Path) -> None:
    from transformers import DebertaV2Config, DebertaV2ForSequenceClassification

    config = DebertaV2Config(
        vocab_size=1200,
        type_vocab_size=0,
        relative_attention=True,
        position_buckets=32,
        max_position_embeddings=512,
        max_relative_positions=-1,
        position_biased_input=False,
        pos_att_type=["p2c", "c2p"],
        share_att_key=True,
        norm_rel_ebd="layer_norm",
        num_labels=1,
        **SMALL,
    )
    by_optimum(DebertaV2ForSequenceClassification(config), "text-classification", path)


@builder
def opt_glpn_fp16(path: Path) -> None:
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16
    from transformers import GLPNConfig, GLPNForDepthEstimation

    heads = {"hidden_sizes": [16, 32, 64, 64], "num_attention_heads": [1, 2, 4, 4], "depths": [1, 1, 1, 1]}
    config = GLPNConfig(decoder_hidden_size=32, **heads)
    by_optimum(GLPNForDepthEstimation(config), "depth-estimation", path)
    onnx.save(convert_float_to_float16(onnx.load(path)), path)


@builder
def hf_tapas(path: Path) -> None:
    from transformers import TapasConfig, TapasForSequenceClassification

    config = TapasConfig(
        vocab_size=1100,
        max_position_embeddings=512,
        num_labels=2,
        reset_position_index_per_cell=False,
        **SMALL,
    )

    class Verdict(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = TapasForSequenceClassification(config)

        def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any) -> Any:
            return self.model(input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids).logits

    kinds = torch.stack([torch.arange(40) % most for most in (2, 5, 8, 2, 3, 3, 4)], 1).expand(2, 40, 7).contiguous()
    ids, names = torch.randint(0, 1100, (2, 40)), ["input_ids", "attention_mask", "token_type_ids"]
    axes = {**{key: {0: "batch", 1: "sequence"} for key in names}, "logits": {0: "batch"}}
    export(Verdict(), (ids, torch.ones_like(ids), kinds), path, names, ["logits"], axes, 16)


@builder
def hf_timeseries(path: Path) -> None:
    from transformers import TimeSeriesTransformerConfig, TimeSeriesTransformerForPrediction

    config = TimeSeriesTransformerConfig(
        prediction_length=12,
        context_length=24,
        lags_sequence=[1, 2, 3, 4, 5, 6, 7],
        num_time_features=2,
        num_static_categorical_features=1,
        cardinality=[40],
        embedding_dimension=[4],
        num_static_real_features=1,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
    )
    names = [
        "past_values",
        "past_time_features",
        "past_observed_mask",
        "static_categorical_features",
        "static_real_features",
        "future_values",
        "future_time_features",
    ]

    class Forecast(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = TimeSeriesTransformerForPrediction(config)

        def forward(self, *given: Any) -> Any:
            return self.model(**dict(zip(names, given, strict=True)), return_dict=True).params

    args = (
        torch.rand(2, 31),
        torch.rand(2, 31, 2),
        torch.ones(2, 31),
        torch.randint(0, 40, (2, 1)),
        torch.rand(2, 1),
        torch.rand(2, 12),
        torch.rand(2, 12, 2),
    )
    export(Forecast(), args, path, names, ["df", "loc", "scale"], {key: {0: "batch_size"} for key in names}, 17)
