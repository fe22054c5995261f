"""Recipes of a precision: how options are written, and what follows from the hardware."""

import json
import re

import pytest

from farm.contract.cells import Recipe
from farm.rules.cells import recipes
from farm.rules.cells.problems import MatrixProblem
from farm.rules.cells.values import PrecisionChoice
from farm.rules.matrices import matrix
from farm.rules.planning import planner
from farm.rules.planning.planner import NodeOffer
from tests.unit.rules.making import make_model

SAMPLES = "d" * 64
EVERY = (
    "fp32",
    "fp16",
    "fp16:keep-io=false:block-ops=Gemm+Conv:exclude-nodes=a",
    "int8-dynamic:weight=uint8:per-channel:reduce-range:op-types=MatMul",
    "int8-qdq:activation=int8:calibration=entropy:symmetric",
    "int8-qoperator:calibration=percentile:exclude-nodes=a+b",
    "int4",
    "int4:block=64:symmetric:accuracy-level=4:exclude-nodes=a",
)


def recipe_of(precision, *, fleet=None, **facts):
    plan = planner.plan(matrix.from_options(runtime="1.31.1", precision=precision), make_model(**facts), fleet)
    return plan.blocks[0].arms[0].spec.recipe


@pytest.mark.parametrize("text", EVERY)
def test_every_precision_is_planned_as_it_is_written_and_reads_back(text):
    read = matrix.from_options(runtime="1.31.1", precision=text)
    assert not planner.plan(read, make_model()).refused
    assert matrix.parse(read.as_plain()) == read
    assert matrix.parse(json.dumps(read.as_plain())) == read
    (choice,) = read.axes["precision"]
    assert recipes.parse_precision(recipes.format_precision(choice.precision, choice.options)) == (
        choice.precision,
        choice.options,
    )


@pytest.mark.parametrize(
    "options",
    [
        {"per-channel": True, "exclude-nodes": ["a", "b"], "activation": "int8"},
        {"per-channel": "true", "exclude-nodes": "a,b", "activation": "int8"},
        {"per-channel": "yes", "exclude-nodes": "a, b", "activation": "int8", "calibration": "minmax"},
    ],
)
def test_a_mapping_says_the_same_as_the_short_form(options):
    declared = {"runtime": "1.31.1", "precision": [{"precision": "int8-qdq", "options": options}]}
    wanted = PrecisionChoice("int8-qdq", {"activation": "int8", "exclude-nodes": "a,b", "per-channel": "true"})
    assert matrix.parse(declared).axes["precision"] == (wanted,)
    short = matrix.from_options(precision="int8-qdq:per-channel:activation=int8:exclude-nodes=a+b")
    assert short.axes["precision"] == (wanted,)


def test_the_published_schema_takes_the_short_form_and_names_every_option():
    short, full = matrix.json_schema()["properties"]["precision"]["anyOf"][0]["anyOf"]
    assert all(re.search(short["pattern"], text) for text in EVERY)
    assert not any(re.search(short["pattern"], text) for text in ("fp31", "int8-qdq:", "int8-qdq: per-channel", "int8"))
    named = {option for text in EVERY for option in recipes.parse_precision(text)[1]}
    assert set(full["properties"]["options"]["properties"]) >= named


@pytest.mark.parametrize(
    ("precision", "words"),
    [
        ("int8-qdq:per-chanel", "Unknown option of int8-qdq 'per-chanel': did you mean 'per-channel'"),
        ("int8-qdq:calibration=entropie", "Unknown value of calibration 'entropie': did you mean 'entropy'"),
        ("int8-qdq:per-channel=perhaps", "The option per-channel is 'perhaps': say true or false"),
        ("int8-qdq:per-channel:per-channel=no", "The option 'per-channel' of int8-qdq is given twice"),
        ("int8-qdq:", "Unknown option of int8-qdq ''"),
        ("int8-qdq:calibration-data=random", "Unknown option of int8-qdq 'calibration-data'"),
        ("fp32:per-channel", "fp32 takes no options, and 'per-channel' is given"),
        ("int8-dynamic:calibration=entropy", "Unknown option of int8-dynamic 'calibration'"),
        ("int4:block=48", "The option block is '48': .* 16, 32, 64, 128 or 256, and the nearest is 32"),
        ("int4:block=4096", "and the nearest is 256"),
        ("int4:block=large", "The option block is 'large': .* 128 or 256\\."),
        ("int4:block=" + "9" * 5000, "128 or 256\\."),
        ({"precision": "int4", "options": {"block": 8}}, "'8': .* and the nearest is 16"),
        ("int4:accuracy-level=5", "Unknown value of accuracy-level '5'"),
        ("int4:per-channel", "Unknown option of int4 'per-channel'"),
        ({"precision": "int8-qdq", "options": {"exclude-nodes": [1]}}, "exclude-nodes is '\\[1\\]': write a list"),
        ({"precision": "int8-qdq", "options": {"exclude-nodes": ["a,b"]}}, "without commas"),
        ({"precision": "int8-qdq", "options": {"activation": 8}}, "Unknown value of activation '8'"),
        ({"precision": "int8-qdq", "options": "per-channel"}, "The options of int8-qdq are 'per-channel'"),
        ({"precision": "int8-qdq", "options": {"op-types": ["x"] * 1001}}, "has 1,001 names"),
    ],
)
def test_an_option_that_cannot_be_used_is_one_sentence(precision, words):
    with pytest.raises(MatrixProblem, match=words):
        matrix.parse({"precision": [precision]})


def test_a_size_of_block_is_a_number_or_a_text_and_the_usual_one_goes_without_saying():
    for written in (
        "int4:block=32",
        "int4:block=032:accuracy-level=0",
        {"precision": "int4", "options": {"block": 32}},
    ):
        assert matrix.parse({"precision": [written]}).axes["precision"] == (PrecisionChoice("int4", {}),)
    number = {"precision": "int4", "options": {"block": 128, "accuracy-level": 4}}
    wanted = PrecisionChoice("int4", {"accuracy-level": "4", "block": "128"})
    assert matrix.parse({"precision": [number]}).axes["precision"] == (wanted,)


def test_whole_numbers_of_few_bits_are_told_from_floats():
    few = {precision for precision in recipes.PRECISIONS if recipes.is_quantised(precision)}
    assert few == {*recipes.EIGHT_BITS, "int4"}


@pytest.mark.parametrize(
    ("tags", "activation"),
    [
        ({"cpu", "x86"}, "uint8"),
        ({"cpu", "arm"}, "int8"),
        ({"cpu"}, "uint8"),
    ],
)
def test_types_of_activations_follow_the_nodes_that_may_measure(tags, activation):
    assert recipe_of("int8-qdq", fleet=[NodeOffer(id="n1", tags=frozenset(tags))]).options["activation"] == activation
    asked = recipe_of("int8-qdq:activation=int8", fleet=[NodeOffer(id="n1", tags=frozenset(tags))])
    assert asked.options["activation"] == "int8"


def test_a_fleet_of_both_kinds_gets_unsigned_activations_and_one_machine_its_own():
    fleet = [NodeOffer(id="n1", tags=frozenset({"cpu", "arm"})), NodeOffer(id="n2", tags=frozenset({"cpu", "x86"}))]
    assert recipe_of("int8-qdq", fleet=fleet).options["activation"] == "uint8"
    plan = planner.plan(
        matrix.from_options(precision="int8-qdq"), make_model(), machine=NodeOffer(id="here", tags=frozenset({"arm"}))
    )
    assert plan.blocks[0].arms[0].spec.recipe.options["activation"] == "int8"


@pytest.mark.parametrize(
    ("provider", "options"),
    [
        ("TensorrtExecutionProvider", {"activation": "int8", "symmetric": "true"}),
        ("QNNExecutionProvider", {"activation": "uint8"}),
        ("CPUExecutionProvider", {"activation": "int8"}),
    ],
)
def test_some_providers_take_one_kind_of_numbers_only(provider, options):
    assert recipes.hardware_defaults(provider, tags={"arm"}) == options


def test_only_static_recipes_depend_on_hardware_and_data():
    for precision in ("fp32", "fp16", "int8-dynamic", "int4"):
        assert recipe_of(precision, calibration_sha256=SAMPLES).options == {}


def test_calibration_data_tell_recipes_apart_and_random_ones_are_named():
    drawn, given = recipe_of("int8-qdq"), recipe_of("int8-qdq", calibration_sha256=SAMPLES)
    assert drawn != given
    assert recipes.describe_recipe(drawn) == "int8-qdq:activation=uint8, random calibration data"
    assert recipes.describe_recipe(given) == "int8-qdq:activation=uint8, calibration data dddddddd"
    assert recipes.variant_options(drawn) == recipes.variant_options(given) == {"activation": "uint8"}


@pytest.mark.parametrize(
    ("recipe", "words"),
    [
        (Recipe(), ""),
        (Recipe(opset=21), "opset 21"),
        (Recipe(precision="fp16", opset=21, options={"keep-io": "false"}), "opset 21, fp16:keep-io=false"),
        (Recipe(precision="int8-dynamic", options={"exclude-nodes": "a,b"}), "int8-dynamic:exclude-nodes=a+b"),
    ],
)
def test_a_recipe_in_words(recipe, words):
    assert recipes.describe_recipe(recipe) == words


@pytest.mark.parametrize(
    ("dtypes", "operators", "is_quantised", "words"),
    [
        ({"float32": 900, "int64": 9000}, ["Conv"], False, "fp32"),
        ({"float32": 9, "float16": 90}, ["Conv"], False, "fp16"),
        ({"bfloat16": 9}, [], False, "bf16"),
        ({"int64": 9}, ["Gather"], False, ""),
        ({"int8": 90, "float32": 9}, ["QuantizeLinear", "DequantizeLinear", "Conv"], True, "int8 QDQ"),
        ({"int8": 90}, ["DequantizeLinear", "QLinearConv"], True, "int8"),
        ({"int8": 90}, ["DynamicQuantizeLinear", "MatMulInteger"], True, "int8"),
        ({"uint8": 90}, ["com.microsoft.MatMulNBits"], True, "int4"),
        ({"int4": 90}, ["DequantizeLinear"], True, "int4"),
    ],
)
def test_an_upload_is_called_what_its_numbers_are(
    dtypes: dict[str, int], operators: list[str], is_quantised: bool, words: str
) -> None:
    assert recipes.describe_uploaded(dtypes, operators, is_quantised=is_quantised) == words


@pytest.mark.parametrize(
    ("precision", "uploaded", "words"),
    [
        ("fp32", "fp16", "as uploaded: fp16"),
        ("fp32", "int8 QDQ", "as uploaded: int8 QDQ"),
        ("fp32", "fp32", "fp32"),
        ("fp32", "", "fp32"),
        ("int8-dynamic", "fp16", "int8-dynamic"),
    ],
)
def test_a_precision_that_changes_nothing_is_the_uploads(precision: str, uploaded: str, words: str) -> None:
    assert recipes.describe_precision(precision, uploaded=uploaded) == words
