"""Reads and writes the options of recipes: what each precision takes, and which defaults the hardware decides.

An option is written `name: value` in a matrix file and `:name=value` after the precision on a command line, as in
`int8-qdq:per-channel:exclude-nodes=conv1+conv2`. Options with their default are left out, so that the same variant
always has the same recipe.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import get_args

from farm.contract.cells import Precision, Recipe
from farm.rules.runtimes import providers
from farm.rules.runtimes.nearest import choice_sentence

PRECISIONS: tuple[str, ...] = get_args(Precision)
STATIC = ("int8-qdq", "int8-qoperator")
_FLOATS = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64"}
EIGHT_BITS = ("int8-dynamic", *STATIC)

_DYNAMIC = ("weight", "per-channel", "reduce-range", "exclude-nodes", "op-types")
_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "fp32": (),
    "fp16": ("keep-io", "block-ops", "exclude-nodes"),
    "int8-dynamic": _DYNAMIC,
    **dict.fromkeys(STATIC, (*_DYNAMIC, "activation", "calibration", "symmetric")),
    "int4": ("block", "symmetric", "accuracy-level", "exclude-nodes"),
}
_CHOICES = {
    "activation": ("uint8", "int8"),
    "weight": ("int8", "uint8"),
    "calibration": ("minmax", "entropy", "percentile"),
    # as MatMulNBits numbers them: unset, fp32, fp16, bf16, int8
    "accuracy-level": ("0", "1", "2", "3", "4"),
}
# how many weights may share a scale, as the kernels of MatMulNBits take them
BLOCKS = (16, 32, 64, 128, 256)
_LISTS = ("exclude-nodes", "op-types", "block-ops")
_DEFAULTS = {"weight": "int8", "calibration": "minmax", "keep-io": "true", "block": "32", "accuracy-level": "0"}
_FLAGS = {**dict.fromkeys(("true", "yes", "on", "1"), "true"), **dict.fromkeys(("false", "no", "off", "0"), "false")}
_MAX_NAMES, _MAX_CHARACTERS = 1_000, 20_000
# the facts of a model's inspection that `describe_uploaded` takes, in the order of its arguments
UPLOADED = ("dtypes", "operators", "is_quantised")

# an option that planning adds to a static recipe: the digest of its calibration data, or that they are random
SAMPLES = "calibration-data"
RANDOM = "random"

_FLAG_SCHEMA = {"anyOf": [{"type": "boolean"}, {"enum": ["true", "false"]}]}
_NAMES_SCHEMA = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
# the JSON schema of each option in a matrix file
SCHEMA: Mapping[str, object] = {
    **{name: {"enum": list(choices)} for name, choices in _CHOICES.items()},
    **dict.fromkeys(_LISTS, _NAMES_SCHEMA),
    "block": {"enum": [*BLOCKS, *map(str, BLOCKS)]},
    "accuracy-level": {"enum": [*range(5), *_CHOICES["accuracy-level"]]},
    **dict.fromkeys(("per-channel", "reduce-range", "keep-io", "symmetric"), _FLAG_SCHEMA),
}


class RecipeProblem(ValueError):
    """An option that cannot be used. The message is one sentence that names it and the way out."""


def is_quantised(precision: str) -> bool:
    return precision in EIGHT_BITS or precision == "int4"


def parse_precision(text: str) -> tuple[str, dict[str, str]]:
    """Parse `NAME:option:option=value` into precision and options. Raises RecipeProblem."""
    name, *parts = (part.strip() for part in text.split(":"))
    options: dict[str, str] = {}
    for part in parts:
        option, sign, value = part.partition("=")
        if option in options:
            raise RecipeProblem(f"The option {option!r} of {name} is given twice: keep one of them.")
        options[option] = value.replace("+", ",") if sign else "true"
    return name, read_options(name, options)


def read_options(precision: str, written: Mapping[str, object]) -> dict[str, str]:
    """Read options into the form of a recipe: text by name, sorted, without defaults.

    Values are written as text, true or false, or a list of names. Raises RecipeProblem where the precision is unknown,
    or an option is unknown to it or has a value that it cannot have.
    """
    if precision not in PRECISIONS:
        raise RecipeProblem(choice_sentence("precision", precision, PRECISIONS))
    allowed = _OPTIONS[precision]
    options = {}
    for key, value in written.items():
        if not allowed:
            raise RecipeProblem(
                f"{precision} takes no options, and {key!r} is given: leave it out, or choose another precision."
            )
        if key not in allowed:
            raise RecipeProblem(choice_sentence(f"option of {precision}", key, allowed))
        option = _read_option(key, value)
        if option != _DEFAULTS.get(key, "" if key in _LISTS else "false"):
            options[key] = option
    return dict(sorted(options.items()))


def split_names(value: str) -> tuple[str, ...]:
    return tuple(part for part in value.split(",") if part)


def hardware_defaults(provider: str, *, tags: Collection[str]) -> dict[str, str]:
    """Choose the options that a static recipe leaves to the hardware, by the tags of the machines that may measure it.

    The fast kernels of x86 take unsigned activations with signed weights (U8S8), those of Arm both signed (S8S8). Some
    providers require other options.
    """
    entry = providers.find(provider)
    if entry is not None and entry.quantisation:
        return dict(entry.quantisation)
    return {"activation": "int8" if "arm" in tags and "x86" not in tags else "uint8"}


def variant_options(recipe: Recipe) -> dict[str, str]:
    """Return the options that the conversion takes: all but SAMPLES, which names the calibration data."""
    return {name: value for name, value in recipe.options.items() if name != SAMPLES}


def format_precision(precision: str, options: Mapping[str, str]) -> str:
    parts = [name if value == "true" else f"{name}={value.replace(',', '+')}" for name, value in options.items()]
    return ":".join([precision, *parts])


def describe_recipe(recipe: Recipe) -> str:
    """Write a recipe as `opset 21, int8-qdq:per-channel, random calibration data`; empty for the uploaded model."""
    samples = recipe.options.get(SAMPLES, "")
    parts = [
        "" if recipe.opset == "as-is" else f"opset {recipe.opset}",
        "" if recipe.precision == "fp32" else format_precision(recipe.precision, variant_options(recipe)),
        f"{RANDOM} calibration data" if samples == RANDOM else samples and f"calibration data {samples[:8]}",
    ]
    return ", ".join(part for part in parts if part)


def describe_precision(precision: str, recipe: str = "", *, uploaded: str = "") -> str:
    """Write a cell's precision with its options, and whether its calibration data are random.

    `recipe` is the text of `describe_recipe`, and `uploaded` that of `describe_uploaded`. Unsigned activations are left
    out, because they are usual. A model that was not uploaded in fp32 and is measured unchanged is `as uploaded: fp16`.
    """
    if precision == "fp32" and uploaded not in ("", "fp32"):
        return f"as uploaded: {uploaded}"
    parts = recipe.split(", ")
    text = next((part for part in parts if part.partition(":")[0] == precision), precision)
    data = " (random calibration data)" if f"{RANDOM} calibration data" in parts else ""
    return text.replace(":activation=uint8", "") + data


def describe_uploaded(
    dtypes: Mapping[str, int] | None, operators: Iterable[str] | None, is_quantised: bool | None
) -> str:
    """Name the number type of a model as it was uploaded: `fp16`, `int8 QDQ`, `int4`.

    Without quantisation it is the floating-point type with the most bytes of weights; empty where there is none.
    `dtypes` has the bytes of weights by type; `operators` are names, with the domain in front unless it is that of
    ONNX. None stands for a fact that is not known.
    """
    dtypes, operators = dtypes or {}, operators or ()
    kinds = {name.rpartition(".")[2] for name in operators}
    if "MatMulNBits" in kinds or {"int4", "uint4"} & dtypes.keys():
        return "int4"
    if is_quantised:
        return "int8 QDQ" if "DequantizeLinear" in kinds and not any("QLinear" in kind for kind in kinds) else "int8"
    floats = {_FLOATS[name]: size for name, size in dtypes.items() if name in _FLOATS}
    return max(floats, key=floats.__getitem__, default="")


def _read_option(key: str, value: object) -> str:
    if key in _LISTS:
        return _read_names(key, value)
    text = str(value).strip() if isinstance(value, str | bool | int) else ""
    if key == "block":
        return _read_block(text)
    if key in _CHOICES:
        if text not in _CHOICES[key]:
            raise RecipeProblem(choice_sentence(f"value of {key}", _shorten(value), _CHOICES[key]))
        return text
    if text.lower() not in _FLAGS:
        raise RecipeProblem(f"The option {key} is {_shorten(value)!r}: say true or false.")
    return _FLAGS[text.lower()]


def _read_block(text: str) -> str:
    size = int(text) if text.isdecimal() and len(text) < 10 else None
    if size in BLOCKS:
        return str(size)
    sizes = f"4-bit weights share a scale in blocks of {', '.join(map(str, BLOCKS[:-1]))} or {BLOCKS[-1]}"
    nearest = "" if size is None else f", and the nearest is {min(BLOCKS, key=lambda block: abs(block - size))}"
    raise RecipeProblem(f"The option block is {_shorten(text)!r}: {sizes}{nearest}.")


def _read_names(key: str, value: object) -> str:
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list) or not all(isinstance(part, str) and "," not in part for part in parts):
        raise RecipeProblem(f"The option {key} is {_shorten(value)!r}: write a list of names, without commas in them.")
    names = [part.strip() for part in parts if part.strip()]
    joined = ",".join(names)
    if len(names) > _MAX_NAMES or len(joined) > _MAX_CHARACTERS:
        raise RecipeProblem(f"The option {key} has {len(names):,} names: at most {_MAX_NAMES:,} are taken.")
    return joined


def _shorten(value: object) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
