"""Tiny models of transformers with random weights, as optimum exports them for a task."""

import logging
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from optimum.exporters.onnx import main_export

BUILDERS: dict[str, Callable[[Path], None]] = {}
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
TOWER = {**SMALL, "projection_dim": 32}
PICTURE = {**SMALL, "image_size": 64, "patch_size": 16}
PAIR = {
    **{"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "pad_token_id": 0},
    **{
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 64,
        "decoder_ffn_dim": 64,
        "bos_token_id": 1,
        "eos_token_id": 2,
    },
}
TURBO = {"num_key_value_heads": 2, "vocab_size": 1000, "max_position_embeddings": 512, **SMALL}
EFFECTS = {"conv_dim": (32, 32, 32), "conv_stride": (5, 4, 4), "conv_kernel": (10, 8, 4), **SMALL}


def exported(name: str, kind: str, task: str, file: str, **config: Any) -> None:
    """Declares the model `name` as the `file` of what optimum writes for a task of an architecture."""

    def build(path: Path) -> None:
        torch.manual_seed(0)
        made = getattr(transformers, f"{kind}Config")(**config)
        model = getattr(transformers, HEADS.get((kind, task), f"{kind}Model"))(made)
        with tempfile.TemporaryDirectory() as scratch:
            source, target = Path(scratch, "source"), Path(scratch, "target")
            model.save_pretrained(source)
            options = {"do_validation": False, "no_post_process": True, "library_name": "transformers"}
            main_export(str(source), target, task=task, device="cpu", **options)
            path.write_bytes((target / file).read_bytes())

    BUILDERS[name] = build


HEADS = {
    ("Bert", "text-classification"): "BertForSequenceClassification",
    ("DistilBert", "question-answering"): "DistilBertForQuestionAnswering",
    ("Roberta", "token-classification"): "RobertaForTokenClassification",
    ("ViT", "image-classification"): "ViTForImageClassification",
    ("Segformer", "semantic-segmentation"): "SegformerForSemanticSegmentation",
    ("Yolos", "object-detection"): "YolosForObjectDetection",
    ("GPT2", "text-generation-with-past"): "GPT2LMHeadModel",
    ("Llama", "text-generation-with-past"): "LlamaForCausalLM",
    ("Qwen2", "text-generation-with-past"): "Qwen2ForCausalLM",
    ("GPTNeoX", "text-generation"): "GPTNeoXForCausalLM",
    ("T5", "text2text-generation-with-past"): "T5ForConditionalGeneration",
    ("Bart", "text2text-generation-with-past"): "BartForConditionalGeneration",
    ("Whisper", "automatic-speech-recognition-with-past"): "WhisperForConditionalGeneration",
    ("Wav2Vec2", "automatic-speech-recognition"): "Wav2Vec2ForCTC",
    ("CLIP", "zero-shot-image-classification"): "CLIPModel",
    ("MobileViT", "image-classification"): "MobileViTForImageClassification",
    ("ConvNext", "image-classification"): "ConvNextForImageClassification",
}
exported("hub_bert", "Bert", "text-classification", "model.onnx", vocab_size=1000, **SMALL)
exported(
    "hub_distilbert", "DistilBert", "question-answering", "model.onnx", vocab_size=1000, dim=32, n_layers=2, n_heads=4,
    hidden_dim=64,
)  # fmt: skip
exported(
    "hub_roberta",
    "Roberta",
    "token-classification",
    "model.onnx",
    vocab_size=1000,
    max_position_embeddings=130,
    **SMALL,
)
exported("hub_vit", "ViT", "image-classification", "model.onnx", **PICTURE)
exported(
    "hub_segformer", "Segformer", "semantic-segmentation", "model.onnx", hidden_sizes=[8, 16, 40, 64],
    depths=[1, 1, 1, 1], decoder_hidden_size=32,
)  # fmt: skip
exported(
    "hub_yolos", "Yolos", "object-detection", "model.onnx", **{**SMALL, "image_size": [64, 96]}, num_detection_tokens=10
)
exported("hub_gpt2", "GPT2", "text-generation-with-past", "model.onnx", vocab_size=1000, n_embd=32, n_layer=2, n_head=4)
exported("hub_llama", "Llama", "text-generation-with-past", "model.onnx", **TURBO)
exported("hub_qwen2", "Qwen2", "text-generation-with-past", "model.onnx", **TURBO)
exported(
    "hub_neox_no_past",
    "GPTNeoX",
    "text-generation",
    "model.onnx",
    vocab_size=1000,
    max_position_embeddings=128,
    **SMALL,
)
T5 = {"vocab_size": 1000, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}
exported("hub_t5_encoder", "T5", "text2text-generation-with-past", "encoder_model.onnx", **T5, decoder_start_token_id=0)
exported("hub_t5_decoder", "T5", "text2text-generation-with-past", "decoder_model.onnx", **T5, decoder_start_token_id=0)
exported(
    "hub_t5_decoder_past", "T5", "text2text-generation-with-past", "decoder_with_past_model.onnx", **T5,
    decoder_start_token_id=0,
)  # fmt: skip
exported(
    "hub_bart_encoder", "Bart", "text2text-generation-with-past", "encoder_model.onnx", vocab_size=1000, **PAIR,
    decoder_start_token_id=2,
)  # fmt: skip
EAR = {**PAIR, "vocab_size": 1000, "decoder_start_token_id": 1, "max_source_positions": 1500, "suppress_tokens": None}
SPEECH = "automatic-speech-recognition-with-past"
exported("hub_whisper_encoder", "Whisper", SPEECH, "encoder_model.onnx", **EAR, begin_suppress_tokens=None)
exported(
    "hub_whisper_decoder_past", "Whisper", SPEECH, "decoder_with_past_model.onnx", **EAR, begin_suppress_tokens=None
)
exported(
    "hub_wav2vec2", "Wav2Vec2", "automatic-speech-recognition", "model.onnx", vocab_size=32, **EFFECTS,
    num_feat_extract_layers=3, num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4,
)  # fmt: skip
exported(
    "hub_clip", "CLIP", "zero-shot-image-classification", "model.onnx", projection_dim=32,
    text_config={**TOWER, "vocab_size": 1000, "max_position_embeddings": 77, "eos_token_id": 999},
    vision_config={**TOWER, "image_size": 64, "patch_size": 16},
)  # fmt: skip
exported(
    "hub_mobilevit", "MobileViT", "image-classification", "model.onnx", image_size=64, hidden_sizes=[32, 40, 48],
    neck_hidden_sizes=[8, 8, 16, 16, 24, 24, 64],
)  # fmt: skip
exported(
    "hub_convnext", "ConvNext", "image-classification", "model.onnx", hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 2, 1],
    image_size=96,
)  # fmt: skip
logging.disable(logging.WARNING)
