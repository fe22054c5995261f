"""Translates ONNX Runtime's errors into reasons: a code for programs and a sentence for people.

The patterns are of releases 1.15 to 1.31. The codes are those of the contract's ReasonCode, which the runner cannot
import.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

MAX_TEXT = 600


class Refusal(Exception):
    """Ends a pass with a reason: its code, its sentence, and the facts that were measured until then.

    `as_reason` returns code and sentence, without the facts.
    """

    def __init__(self, code: str, text: str, **facts: object) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.facts = facts

    def as_reason(self) -> dict[str, object]:
        return {"code": self.code, "text": self.text}


@contextmanager
def translate_errors(during: str, **facts: object) -> Iterator[None]:
    """Turn any exception inside the `with` into a Refusal with `facts`; a Refusal passes as it is, without them.

    `during` is import, session, provider or run.
    """
    try:
        yield
    except Refusal:
        raise
    except Exception as error:  # ONNX Runtime raises its own classes, RuntimeError and ValueError
        code, text = explain_error(error, during=during)
        raise Refusal(code, text, **facts) from error


def explain_error(error: BaseException, *, during: str) -> tuple[str, str]:
    """Return the code and the sentence of the reason for an exception.

    `during` is import, session, provider or run.
    """
    raw = str(error)
    if isinstance(error, MemoryError):
        return "out_of_memory", "the process ran out of memory; give the cell a smaller batch or the node more memory"
    for pattern, rule in _RULES:
        match = re.search(pattern, raw, re.DOTALL | re.IGNORECASE)
        if match and not isinstance(rule, tuple):
            return rule(match)
        if match and isinstance(rule, tuple):
            return rule[0], rule[1].format(match[0], *match.groups(), line=extract_message(raw))
    return _OTHER_CODES[during], f"{_OTHER_SENTENCES[during]}: {extract_message(raw) or type(error).__name__}"


def extract_message(raw: str) -> str:
    """Remove ONNX Runtime's status, C++ locations and the model's path from a message, and cut it to MAX_TEXT."""
    text = re.sub(r"\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : ", "", raw)
    text = re.sub(r"Load model from \S+ failed:", "", text)
    # "/onnxruntime_src/…/model.cc:149 onnxruntime::Model::Model(…) the message"
    text = re.sub(r"\S+\.(?:cc|h|cpp|hpp):\d+ (?:[\w:~<>&*\s,]+\([^()]*(?:\([^()]*\)[^()]*)*\)(?: const)? )?", "", text)
    return re.sub(r"\s+", " ", text).strip()[:MAX_TEXT]


_NO_KERNEL = (
    "not_supported",
    "this runtime has no kernel for {1} with the types the model gives it; use another precision, provider or runtime",
)


def _explain_operator(match: re.Match[str]) -> tuple[str, str]:
    name = match[1].removesuffix("(-1)")
    domain = name.partition(":")[0] if ":" in name else ""
    if domain in ("", "ai.onnx"):
        return "not_supported", f"this runtime knows no operator {name}; use a runtime or an opset that has it"
    return "custom_domain", (
        f"the model uses {name}, which this runtime does not have; "
        "custom operators are not loaded: export the model with standard operators"
    )


def _explain_memory(match: re.Match[str]) -> tuple[str, str]:
    size = f" asking for {int(match[1]):,} bytes" if match.lastindex and match[1] else ""
    return "out_of_memory", f"memory ran out{size}; give the cell a smaller batch or shapes, or the node more memory"


def _explain_dimension(match: re.Match[str]) -> tuple[str, str]:
    code = "fixed_batch" if match[2] == "0" else "inference_failed"
    return code, (
        f"input {match[1]} has size {match[3]} in dimension {match[2]} and the model wants {match[4]}; "
        "set that batch or shape, or export the dimension as dynamic"
    )


Rule = Callable[[re.Match[str]], tuple[str, str]]
# a pattern, and its code and sentence: a function of the match, or a format of its groups by number
_RULES: tuple[tuple[str, Rule | tuple[str, str]], ...] = (
    (
        r"Unsupported model IR version: (\d+), max supported IR version: (\d+)",
        (
            "ir_too_new",
            "the model's IR version is {1} and this runtime reads up to {2}; use a newer runtime, or save the model "
            "with an older IR version",
        ),
    ),
    (
        r"Opset (\d+) is under development.*?official support for domain (\S+) is till opset (\d+)",
        (
            "opset_too_new",
            "the model's opset is {1} and this runtime supports domain {2} till opset {3}; use a newer runtime, or an "
            "older opset",
        ),
    ),
    (r"Fatal error: (\S+) is not a registered function/op", _explain_operator),
    (r"No Op registered for (\S+) with domain_version", _explain_operator),
    (r"Could not find an implementation for (\S+) node", _NO_KERNEL),
    (r"Failed to find kernel for (\S+)", _NO_KERNEL),
    (r"Failed to allocate memory for requested buffer of size (\d+)", _explain_memory),
    (r"bad_alloc|bad allocation|out of memory|Cannot allocate memory|CUBLAS_STATUS_ALLOC_FAILED", _explain_memory),
    (r"Got invalid dimensions for input: (\S+) for.*?index: (\d+) Got: (\d+) Expected: (\d+)", _explain_dimension),
    (
        r"INVALID_PROTOBUF|Protobuf parsing failed|does not have a graph|No graph was found",
        ("model_not_loaded", "the file is not a readable ONNX model; upload it again or export it anew"),
    ),
    (
        r"external data|cannot get file size|External initializer|\.data\b.*no such file",
        ("model_not_loaded", "the model's external data cannot be read ({line}); upload it with its data files"),
    ),
)

# for errors that match no rule
_OTHER_CODES = {
    "import": "runtime_install_failed",
    "session": "model_not_loaded",
    "provider": "provider_not_active",
    "run": "inference_failed",
}
_OTHER_SENTENCES = {
    "import": "the runtime cannot be imported on this machine",
    "session": "this runtime did not load the model",
    "provider": "the provider did not start",
    "run": "the inference failed",
}
