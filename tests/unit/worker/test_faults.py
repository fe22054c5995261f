"""ONNX Runtime's error strings, as releases from 1.15 to 1.31 write them, turned into reasons."""

import pytest

from worker.runner import faults

CONSTRUCTOR = (
    "onnxruntime::Model::Model(onnx::ModelProto&&, const PathString&, const IOnnxRuntimeOpSchemaRegistryList*, "
    "const onnxruntime::logging::Logger&, const onnxruntime::ModelOptions&)"
)


def explained(text: str, *, during: str = "session") -> tuple[str, str]:
    return faults.explain_error(Exception(text), during=during)


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        (
            "[ONNXRuntimeError] : 1 : FAIL : Load model from /secret/m.onnx failed:/onnxruntime_src/onnxruntime/"
            f"core/graph/model.cc:149 {CONSTRUCTOR} Unsupported model IR version: 10, max supported IR version: 9\n",
            "ir_too_new",
            "IR version is 10 and this runtime reads up to 9",
        ),
        (
            "[ONNXRuntimeError] : 1 : FAIL : Load model from /m.onnx failed:/onnxruntime_src/onnxruntime/core/graph/"
            "model_load_utils.h:46 void onnxruntime::model_load_utils::ValidateOpsetForDomain(const int&) ONNX Runtime "
            "only *guarantees* support for models stamped with official released opset versions. Opset 22 is under "
            "development and support for this is limited. The operator schemas and or other functionality may change "
            "before next ONNX release and in this case ONNX Runtime will not guarantee backward compatibility. Current "
            "official support for domain ai.onnx is till opset 21.",
            "opset_too_new",
            "opset is 22 and this runtime supports domain ai.onnx till opset 21",
        ),
        ("Fatal error: com.example:Fancy(-1) is not a registered function/op", "custom_domain", "com.example:Fancy"),
        ("Fatal error: Fancy(-1) is not a registered function/op", "not_supported", "no operator Fancy"),
        (
            "[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : Could not find an implementation for Sin(22) node with name ''",
            "not_supported",
            "no kernel for Sin(22)",
        ),
        ("[ONNXRuntimeError] : 7 : INVALID_PROTOBUF : Protobuf parsing failed.", "model_not_loaded", "readable"),
        ("filesystem error: cannot get file size: No such file [m.data]", "model_not_loaded", "external data"),
        ("a.cc:368 Failed to allocate memory for requested buffer of size 4398046511104", "out_of_memory", "4,398"),
        ("std::bad_alloc", "out_of_memory", "smaller batch"),
        (
            "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Got invalid dimensions for input: x for the following "
            "indices\n index: 0 Got: 5 Expected: 4\n Please fix either the inputs or the model.",
            "fixed_batch",
            "input x has size 5 in dimension 0 and the model wants 4",
        ),
        (
            "Got invalid dimensions for input: x for the following indices\n index: 2 Got: 5 Expected: 4",
            "inference_failed",
            "dimension 2",
        ),
    ],
)  # fmt: skip
def test_a_known_error_becomes_a_code_and_a_sentence(text: str, code: str, words: str) -> None:
    found_code, sentence = explained(text)
    assert found_code == code
    assert words in sentence
    assert "onnxruntime_src" not in sentence


@pytest.mark.parametrize(
    ("during", "code"),
    [
        ("session", "model_not_loaded"),
        ("provider", "provider_not_active"),
        ("run", "inference_failed"),
        ("import", "runtime_install_failed"),
    ],
)
def test_an_unknown_error_says_during_what_it_came(during: str, code: str) -> None:
    found, sentence = explained("[ONNXRuntimeError] : 1 : FAIL : something new", during=during)
    assert found == code
    assert sentence.endswith("something new")


def test_memory_of_python_itself_may_run_out_too() -> None:
    assert faults.explain_error(MemoryError(), during="run")[0] == "out_of_memory"


def test_an_error_without_words_is_told_by_its_class() -> None:
    assert explained("", during="run")[1].endswith("Exception")


def test_a_refusal_keeps_what_was_known() -> None:
    with pytest.raises(faults.Refusal) as raised, faults.translate_errors("run", active_providers=["P"]):
        raise RuntimeError("no")
    assert raised.value.facts == {"active_providers": ["P"]}
    assert raised.value.as_reason()["code"] == "inference_failed"
