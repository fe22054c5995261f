"""Lines of Python that make a session: they run as integration; what they say is here."""

from farm.rules.presenting.session_code import session_code
from tests.documents import make_cell


def test_what_differs_from_the_default_is_set() -> None:
    session = {"execution_mode": "parallel", "inter_op_threads": 2, "spinning": False, "arena": False} | {
        "memory_pattern": False, "config": {"session.set_denormal_as_zero": "1"}, "disabled_optimizers": ["A"],
    }  # fmt: skip
    cell = make_cell(
        threads=3, optimization="basic", session=session, provider="CUDAExecutionProvider", memory_limit_mb=512,
        provider_options={"device_id": "1"}, requested_providers=["CUDAExecutionProvider", "CPUExecutionProvider"],
    )  # fmt: skip
    code = session_code(cell, "it's.onnx")
    for line in (
        "options.intra_op_num_threads = 3",
        "options.inter_op_num_threads = 2",
        "options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC",
        "options.execution_mode = onnxruntime.ExecutionMode.ORT_PARALLEL",
        "options.enable_mem_pattern = False",
        "options.enable_cpu_mem_arena = False",
        'options.add_session_config_entry("session.intra_op.allow_spinning", "0")',
        'options.add_session_config_entry("session.inter_op.allow_spinning", "0")',
        "options.add_session_config_entry('session.set_denormal_as_zero', '1')",
        "# beside the session: memory limit 512 MiB",
    ):
        assert line in code.splitlines()
    providers = "[('CUDAExecutionProvider', {'device_id': '1'}), 'CPUExecutionProvider']"
    made = f"""onnxruntime.InferenceSession("it's.onnx", options, providers={providers}, disabled_optimizers=['A'])"""
    assert code.endswith(f"session = {made}")


def test_a_plain_session_sets_little() -> None:
    assert len(session_code(make_cell(session={"spinning": True}), "m.onnx").splitlines()) == 7
