"""The matrix: axes, rules, settings, and a sentence for everything that is wrong."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.contract.cells import Budget, Runtime
from farm.rules.cells.axes import MATRIX_AXES
from farm.rules.cells.problems import MatrixProblem
from farm.rules.cells.values import PrecisionChoice, ProviderChoice
from farm.rules.matrices import matrix
from farm.rules.matrices.matrix import Matrix

EVERYTHING = """
name: everything
budget: precise
fail-fast: true
max-parallel: 2
matrix:
  opset: [as-is, 21, max-of-runtime]
  runtime: [1.29.0, onnxruntime-openvino==1.24.1]
  provider:
    - cpu
    - name: openvino
      options: {device_type: CPU, num_of_threads: 1}
  batch: [1, 8]
  shapes:
    - {sequence: 64}
    - {sequence: 128}
  precision:
    - fp32
    - {precision: int8-qdq, options: {per-channel: "true"}}
  threads: 1
  session:
    - default
    - name: quiet
      spinning: false
      memory_pattern: false
      arena: false
      inter-op-threads: 2
      execution-mode: parallel
      disabled-optimizers: [ConstantFolding]
      config: {session.set_denormal_as_zero: "1", session.use_env_allocators: 0}
  optimization: [all, disable]
  policy: prefer-npu
  call: run
  memory_limit_mb: 1024
  hardware: [x86, "node:bench-1", x86+avx512, "cuda|rocm"]
  concurrency: [1, 4]
  scenario: [single, {sustained: 10}]
  exclude:
    - {batch: 8, session: quiet}
  include:
    - {runtime: 1.31.1, batch: 32}
"""


def test_every_key_of_a_matrix_is_read():
    read = matrix.parse(EVERYTHING)
    assert read.name == "everything"
    assert (read.budget, read.fail_fast, read.max_parallel) == (Budget.PRECISE, True, 2)
    assert set(read.axes) == set(MATRIX_AXES)
    assert read.axes["runtime"] == (
        Runtime(distribution="onnxruntime", version="1.29.0"),
        Runtime(distribution="onnxruntime-openvino", version="1.24.1"),
    )
    assert read.axes["provider"][1] == ProviderChoice(
        "OpenVINOExecutionProvider", {"device_type": "CPU", "num_of_threads": "1"}
    )
    assert read.axes["precision"][1] == PrecisionChoice("int8-qdq", {"per-channel": "true"})
    quiet = read.axes["session"][1]
    assert quiet.config == {"session.set_denormal_as_zero": "1", "session.use_env_allocators": "0"}
    assert (quiet.spinning, quiet.inter_op_threads, quiet.execution_mode) == (False, 2, "parallel")
    assert read.exclude[0]["session"] is quiet
    assert read.include == ({"runtime": Runtime(distribution="onnxruntime", version="1.31.1"), "batch": 32},)


def test_a_matrix_written_out_reads_back_as_itself():
    read = matrix.parse(EVERYTHING)
    assert matrix.parse(read.as_plain()) == read
    assert matrix.parse(json.dumps(read.as_plain())) == read


def test_the_axes_may_stand_at_the_top_level_or_under_strategy():
    flat = matrix.parse("runtime: 1.31.1\nbatch: [1, 8]\nbudget: standard\n")
    assert flat == matrix.parse("budget: standard\nmatrix: {runtime: 1.31.1, batch: [1, 8]}")
    assert flat == matrix.parse("strategy: {budget: standard, matrix: {runtime: 1.31.1, batch: [1, 8]}}")


def test_equal_values_of_an_axis_stay_two_points():
    assert len(matrix.from_options(runtime="1.31.1,1.31.1").axes["runtime"]) == 2


def test_the_default_matrix_is_the_documented_one():
    assert matrix.default_matrix().as_plain() == {
        "budget": "quick",
        "fail-fast": False,
        "matrix": {
            "runtime": ["onnxruntime==1.29.0", "onnxruntime==1.31.1"],
            "provider": ["CPUExecutionProvider"],
            "batch": [1, 8],
            "precision": ["fp32", "int8-dynamic"],
            "threads": [1],
        },
    }


def test_options_of_a_command_line_replace_axes_and_leave_the_rest():
    read = matrix.from_options(matrix.default_matrix(), runtime="1.30.0", batch=[2, 4], threads=None, budget="standard")
    assert read.budget is Budget.STANDARD
    assert [str(one) for one in read.axes["runtime"]] == ["onnxruntime==1.30.0"]
    assert read.axes["batch"] == (2, 4)
    assert read.axes["threads"] == (1,)


def test_options_alone_make_a_matrix():
    read = matrix.from_options(provider="cpu", batch="1, 8", shapes=[{"sequence": 32}])
    assert read.axes["batch"] == (1, 8)
    assert read.axes["shapes"] == ({"sequence": 32},)
    assert matrix.from_options() == Matrix()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not a mapping of axes"),
        ("[1, 2]", "not a mapping of axes"),
        ("just words", "not a mapping of axes"),
        ("runtimes: [1.31.1]", "Unknown key 'runtimes': did you mean 'runtime'"),
        ("matrix: {bach: 1}", "Unknown key 'bach': did you mean 'batch'"),
        ("zzzz: 1", "Unknown key 'zzzz': choose one of opset, runtime"),
        ("matrix: 3", "matrix is 3: write a mapping"),
        ("batch: 1\nmatrix: {batch: 2}", "'batch' is given twice, at the top level and under 'matrix'"),
        ("matrix: {batch: []}", "The axis 'batch' is empty"),
        ("batch:", "The axis 'batch' is empty"),
        ("batch: [0]", "batch is 0: write a whole number from 1 to 65536"),
        ("batch: [true]", "batch is True: write a whole number"),
        ("batch: [eight]", "batch is 'eight'"),
        ("batch: [1.5]", "batch is '1.5'"),
        ("threads: 5000", "threads is 5000: write a whole number from 1 to 1024"),
        ("concurrency: -1", "concurrency is -1"),
        ("opset: latest", "Unknown opset 'latest': choose one of as-is, max-of-runtime, a number"),
        ("opset: max-of-runtme", "did you mean 'max-of-runtime'"),
        ("opset: 0", "An opset is 0"),
        ("opset: true", "An opset is True"),
        ("runtime: onnxruntime", "'onnxruntime' is not one version"),
        ("runtime: '>=1.29'", "'>=1.29' is not one version"),
        ("runtime: onnxruntime==", "is not one version"),
        ("runtime: onnxruntme==1.31.1", "Unknown distribution 'onnxruntme': did you mean 'onnxruntime'"),
        ("runtime: tensorflow==2.9", "Unknown distribution 'tensorflow'"),
        ("runtime: [[1]]", "is not one version"),
        ("runtime: true", "is not one version"),
        ("provider: gpu-thing", "Unknown provider 'gpu-thing'"),
        ("provider: openvno", "did you mean 'openvino'"),
        ("provider: gpu", "Unknown provider 'gpu': did you mean 'cuda' or 'tensorrt'?"),
        ("provider: NVIDIA", "Unknown provider 'NVIDIA': did you mean 'cuda' or 'tensorrt'?"),
        ("provider: amd", "did you mean 'migraphx' or 'rocm'"),
        ("provider: metal", "did you mean 'coreml'"),
        ("provider: 3", "provider has 3: write a name, or `name` and `options`"),
        ("provider: {options: {}}", "provider has .*write a name"),
        ("provider: {name: cuda, option: {}}", "provider 'cuda': Unknown key 'option': did you mean 'options'"),
        ("provider: {name: cuda, options: 3}", "The option of CUDAExecutionProvider is 3: write options"),
        ("provider: {name: cuda, options: {device_id: true}}", "'device_id' is True: write the text"),
        ("provider: {name: cuda, options: {device: 1}}", "Unknown option of CUDAExecutionProvider 'device'"),
        ("precision: fp31", "Unknown precision 'fp31': did you mean 'fp32'"),
        ("shapes: 64", "shapes has 64: write `dimension: size` pairs"),
        ("shapes: {sequence: -1}", "The dimension 'sequence' is -1"),
        ("optimization: most", "Unknown optimization 'most': choose one of disable, basic, extended, all"),
        ("optimization: al", "did you mean 'all'"),
        ("hardware: 'a b+c|d'", "The hardware 'a b\\+c\\|d' is not a tag"),
        ("hardware: 3", "The hardware 3 is not a tag"),
        ("hardware: 'GPU'", "The hardware 'GPU' is not a tag"),
        ("session: fast", "session has 'fast': write `default`, or a set with a `name`"),
        ("session: {spinning: false}", "A session set has no name: give it one beside spinning"),
        ("session: {}", "A session set has no name: give it one beside its options"),
        ("session: {name: 3}", "A session set is named 3"),
        ("session: {name: a, spining: false}", "The session set 'a': Unknown key 'spining': did you mean 'spinning'"),
        ("session: {name: a, spinning: 0}", "spinning is 0: write true or false"),
        ("session: {name: a, inter-op-threads: 0}", "inter-op-threads is 0"),
        ("session: {name: a, execution-mode: sequental}", "did you mean 'sequential'"),
        ("session: {name: a, disabled-optimizers: x}", "disabled-optimizers is 'x': write a list of names"),
        ("session: {name: a, disabled-optimizers: [1]}", "write a list of names"),
        ("session: {name: a, config: 1}", "config is 1: write entries"),
        ("session: {name: a, config: {k: true}}", "write entries"),
        ("session: {name: a, config: {optimized_model_filepath: /x}}", "names a place on the node"),
        ("session: [{name: a}, {name: a, arena: false}]", "Two session sets are named 'a'"),
        ("budget: fast", "Unknown budget 'fast': choose one of glance, quick, standard, precise"),
        ("budget: standart", "did you mean 'standard'"),
        ("batch: 1\nfail-fast: 1", "fail-fast is 1: write true or false"),
        ("batch: 1\npre: newest", "pre is 'newest': write true or false"),
        ("batch: 1\nmax-parallel: 0", "max-parallel is 0"),
        ("batch: 1\nname: 3", "name is 3"),
        ("batch: 1\nexclude: {batch: 1}", "exclude is .*write a list of combinations"),
        ("batch: 1\nexclude: [3]", "exclude entry 1 is 3"),
        ("batch: 1\nexclude: [{}]", "exclude entry 1 is {}"),
        ("batch: 1\nexclude: [{bach: 1}]", "exclude entry 1: Unknown axis 'bach': did you mean 'batch'"),
        ("batch: 1\nexclude: [{batch: x}]", "exclude entry 1: batch is 'x'"),
        ("batch: 1\nexclude: [{threads: 1}]", "names the axis 'threads', which the matrix does not declare"),
        ("runtime: 1.29.0\nexclude: [{runtime: 1.29.1}]", "matches nothing. .*did you mean 'onnxruntime==1.29.0'"),
        ("batch: 1\ninclude: [{batch: 0}]", "include entry 1: batch is 0"),
    ],
)
def test_a_wrong_matrix_is_refused_in_one_sentence_that_names_it(text, words):
    with pytest.raises(MatrixProblem, match=words) as caught:
        matrix.parse(text)
    assert "\n" not in str(caught.value)


def test_a_long_value_is_shortened_in_the_sentence():
    with pytest.raises(MatrixProblem) as caught:
        matrix.parse({"batch": ["x" * 5000]})
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "plain",
    [
        {"batch": list(range(1, 1002))},
        {"batch": list(range(1, 101)), "threads": list(range(1, 101))},
        {"batch": 1, "include": [{"batch": 1}] * 1001},
        {"batch": list(range(1, 5001)), "threads": [1, 2]},
        {
            "batch": list(range(1, 1001)),
            "threads": list(range(1, 1001)),
            "exclude": [{"threads": number} for number in range(2, 1001)],
        },
    ],
)
def test_a_matrix_beyond_its_limits_is_refused(plain):
    with pytest.raises(MatrixProblem, match="at most"):
        matrix.parse(plain)


def test_excluded_points_do_not_count_against_the_limit():
    plain = {
        "batch": list(range(1, 101)),
        "threads": list(range(1, 101)),
        "exclude": [{"threads": number} for number in range(2, 101)],
    }
    assert len(matrix.parse(plain).exclude) == 99


def test_the_json_schema_names_every_key_and_is_json():
    schema = matrix.json_schema()
    properties = json.loads(json.dumps(schema))["properties"]
    settings = {
        "budget",
        "fail-fast",
        "inputs",
        "max-parallel",
        "models",
        "name",
        "operators",
        "pre",
        "tolerance",
        "wish",
    }
    assert set(properties) == {*MATRIX_AXES, "exclude", "include", *settings, "sustained", "matrix"}
    assert set(properties["matrix"]["properties"]) == {*MATRIX_AXES, "exclude", "include"}


def test_a_number_given_as_text_is_a_number():
    assert matrix.parse({"batch": ["8"], "opset": ["21"]}).axes == {"opset": (21,), "batch": (8,)}


plain_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 70_000)
    | st.text(max_size=12)
    | st.sampled_from(["cpu", "1.31.1", "fp32"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=8) | st.sampled_from([*MATRIX_AXES]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.sampled_from([*MATRIX_AXES, "exclude", "include", "budget", "name", "matrix"]), plain_values, max_size=4
    )
)
def test_any_plain_values_are_read_or_refused(plain):
    with contextlib.suppress(MatrixProblem):
        read = matrix.parse(plain)
        assert matrix.parse(read.as_plain()) == read


@pytest.mark.parametrize("plain", [{"name": "\ud800", "batch": [1]}, {"batch": ["\udfff"]}, {"\ud800": 1}])
def test_half_a_character_in_a_request_is_refused_before_a_database_sees_it(plain: dict[str, Any]) -> None:
    with pytest.raises(MatrixProblem, match="half a character"):
        matrix.parse(plain)


@pytest.mark.parametrize("written", ["previous", "encoder@2", ["encoder@2", "de coder@v12"], [], None])
def test_models_of_a_matrix_are_read_and_written_back(written: object) -> None:
    read = matrix.parse({"runtime": "1.31.1", "models": written})
    assert matrix.parse(read.as_plain()) == read
    assert list(read.models) == ([written] if isinstance(written, str) else written or [])


@pytest.mark.parametrize(
    "written",
    [
        "encoder",
        "encoder@",
        "@1",
        "encoder@x",
        ["a@1", "a@1"],
        [f"a@{n}" for n in range(9)],
        3,
        {"a": 1},
        ["a\n@1"],
        [1],
    ],
)
def test_models_that_name_no_versions_are_refused(written: object) -> None:
    with pytest.raises(MatrixProblem, match=r"^models "):
        matrix.parse({"runtime": "1.31.1", "models": written})
