"""The table of execution providers, with one entry for each: all other code and the documents read from it.

Names are ONNX Runtime's own. A provider in `get_available_providers()` proves nothing: a node gets a provider's
hardware tag only after a trace has shown it executing. Options that name a path, a library or a pointer are the agent's
to set and are never taken from a matrix. Packages and their releases: PyPI, November 2026. NVIDIA's entries and the
browser's stand in files of their own.

After a change: `deploy/lock-runtimes` hashes new packages, `deploy/document-providers` writes the tables of docs/.
"""

from farm.rules.runtimes import genai, nvidia, outside, web
from farm.rules.runtimes.provider import Build, Building, Plugin, Provider, Signs

PLAIN = Build("onnxruntime", is_complete=True)
_ROCM = Build("onnxruntime-rocm")

_X86 = ("x86_64", "amd64")
_ON_AMD = ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")

_BESIDE_THE_CPU: tuple[Provider, ...] = (
    Provider(
        name="XnnpackExecutionProvider",
        short="xnnpack",
        colour=7,
        title="XNNPACK",
        device="cpu",
        tag="xnnpack",
        threads_option="intra_op_num_threads",
        needs="a build of ONNX Runtime of the node's owner that lists it",
        options=frozenset({"intra_op_num_threads"}),
    ),
    Provider(
        name="ACLExecutionProvider",
        short="acl",
        colour=5,
        device="cpu",
        tag="acl",
        aliases=("armcl",),
        needs="a build of ONNX Runtime for Arm, of the node's owner, that lists it",
        options=frozenset({"enable_fast_math"}),
    ),
    *nvidia.PROVIDERS,
    Provider(
        name="OpenVINOExecutionProvider",
        short="openvino",
        colour=1,
        device="cpu",
        tag="openvino",
        meant_by=("intel", "npu"),
        computes_with=("openvino",),
        threads_option="num_of_threads",
        aliases=("ov",),
        builds=(Build("onnxruntime-openvino", is_complete=True),),
        plugins=(
            Plugin(
                "onnxruntime-ep-openvino",
                library="onnxruntime_ep_openvino:get_library_path",
                releases=("1.4.0", "1.4.1", "1.5.2", "1.6.1", "1.7.0", "1.8.0", "1.8.1"),
            ),
        ),
        needs="an x86 processor with its build; the plug-in asks for Intel hardware",
        options=frozenset(
            {
                "device_type",
                "precision",
                "num_of_threads",
                "num_streams",
                "disable_dynamic_shapes",
                "model_priority",
                "enable_qdq_optimizer",
                "enable_opencl_throttling",
            }
        ),
        defaults={"device_type": "CPU"},
        probe_with="onnxruntime-openvino==1.24.1",
        signs=Signs(machines=_X86),
    ),
    Provider(
        name="CoreMLExecutionProvider",
        short="coreml",
        colour=6,
        title="Core ML",
        device="npu",
        tag="coreml",
        meant_by=("apple", "metal", "mps"),
        builds=(PLAIN,),
        needs="macOS",
        options=frozenset(
            {
                "ModelFormat",
                "MLComputeUnits",
                "RequireStaticInputShapes",
                "EnableOnSubgraphs",
                "SpecializationStrategy",
                "AllowLowPrecisionAccumulationOnGPU",
            }
        ),
        signs=Signs(systems=("darwin",)),
        building=Building(cache="ModelCacheDirectory"),
    ),
    Provider(
        name="MIGraphXExecutionProvider",
        short="migraphx",
        colour=2,
        device="gpu",
        tag="migraphx",
        meant_by=("amd", "radeon"),
        computes_with=("migraphx",),
        memory="cuda",
        builds=(Build("onnxruntime-migraphx"), _ROCM),
        needs="an AMD GPU that the ROCm driver lists",
        options=frozenset(
            {
                "device_id",
                "migraphx_fp16_enable",
                "migraphx_bf16_enable",
                "migraphx_int8_enable",
                "migraphx_exhaustive_tune",
                "migraphx_mem_limit",
                "migraphx_arena_extend_strategy",
            }
        ),
        probe_with="onnxruntime-migraphx==1.27.1",
        signs=Signs(machines=_X86, files=("/dev/kfd",)),
        environment=_ON_AMD,
        building=Building(cache="migraphx_model_cache_dir"),
    ),
    Provider(
        name="ROCMExecutionProvider",
        short="rocm",
        colour=4,
        device="gpu",
        tag="rocm",
        meant_by=("amd", "radeon"),
        computes_with=("rocm",),
        memory="cuda",
        builds=(_ROCM,),
        needs="an AMD GPU that the ROCm driver lists",
        options=frozenset(
            {
                "device_id",
                "gpu_mem_limit",
                "arena_extend_strategy",
                "miopen_conv_exhaustive_search",
                "miopen_conv_use_max_workspace",
                "do_copy_in_default_stream",
                "enable_hip_graph",
                "tunable_op_enable",
                "tunable_op_tuning_enable",
            }
        ),
        environment=_ON_AMD,
    ),
    Provider(
        name="DmlExecutionProvider",
        short="directml",
        colour=6,
        title="DirectML",
        device="gpu",
        tag="directml",
        memory="dml",
        aliases=("dml", "DirectMLExecutionProvider"),
        builds=(Build("onnxruntime-directml", is_complete=True),),
        needs="Windows with a DirectX 12 adapter",
        options=frozenset({"device_id", "performance_preference", "device_filter", "disable_metacommands"}),
    ),
    Provider(
        name="QNNExecutionProvider",
        short="qnn",
        colour=2,
        device="npu",
        tag="qnn",
        meant_by=("npu",),
        # QNN needs unsigned activations, on Arm machines too
        quantisation={"activation": "uint8"},
        plugins=(
            Plugin(
                "onnxruntime-qnn",
                library="onnxruntime_qnn:get_library_path",
                releases=("2.0.0", "2.1.0", "2.1.1", "2.2.0", "2.3.0", "2.4.0", "2.5.0", "2.6.0", "2.7.0"),
                first_major=2,
            ),
        ),
        needs="a Snapdragon device with the named backend, or an x86 processor that simulates one",
        simulated_on=frozenset({"x86"}),
        leaves_context=True,
        probe_with="onnxruntime-qnn==2.7.0",
        options=frozenset(
            {
                "backend_type",
                "htp_performance_mode",
                "htp_graph_finalization_optimization_mode",
                "htp_arch",
                "soc_model",
                "vtcm_mb",
                "enable_htp_fp16_precision",
                "offload_graph_io_quantization",
                "qnn_context_priority",
            }
        ),
        defaults={"backend_type": "htp"},
    ),
    Provider(
        name="WebGpuExecutionProvider",
        short="webgpu",
        colour=4,
        title="WebGPU",
        device="gpu",
        tag="webgpu",
        builds=(web.BUILD,),
        plugins=(
            Plugin(
                "onnxruntime-ep-webgpu",
                library="onnxruntime_ep_webgpu:get_library_path",
                releases=("0.1.0", "0.2.1", "0.3.0", "0.4.0"),
            ),
        ),
        needs="a Vulkan, Metal or DirectX 12 adapter that the plug-in or a node's browser sees",
        options=frozenset(
            {"deviceId", "preferredLayout", "validationMode", "storageBufferCacheMode", "powerPreference"}
        ),
        probe_with="onnxruntime-ep-webgpu==0.4.0",
        signs=Signs(
            machines=(*_X86, "aarch64"),
            files=("/dev/dri/renderD*",),
            libraries=("vulkan",),
            stands_in="ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER",
        ),
        environment=("ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER", "VK_DRIVER_FILES", "VK_ICD_FILENAMES"),
    ),
    Provider(
        # a third-party package, which is installed only where it is allowed by name
        name="ggml",
        short="ggml",
        device="cpu",
        tag="ggml",
        threads_option="threads",
        plugins=(
            Plugin(
                "onnxruntime-ggml",
                library="onnxruntime_ggml:library_path",
                releases=("0.2.0",),
                core="1.30.0",
                threads_option="threads",
                beside=">=1.29,<1.31",
            ),
        ),
        needs="its package allowed by name, on the farm and by the node's owner",
        probe_with="onnxruntime-ggml==0.2.0",
        # the options that its library logs with ORT_GGML_LOG; it ignores any that it does not know
        options=frozenset(
            {
                "device",
                "threads",
                "partial",
                "attention",
                "weights",
                "accel",
                "conv_transpose_cpu",
                "conv_transpose_matmul",
                "gpu_min_weight_mb",
                "sticky",
            }
        ),
    ),
    web.PROVIDER,
    web.WEBNN,
    Provider(
        name="PluginExecutionProvider",
        short="plugin",
        device="npu",
        tag="plugin",
        aliases=("plug-in",),
        needs="a library of the node's owner that registers and lists at least one device",
        takes_any_option=True,
    ),
)


CPU = Provider(
    name="CPUExecutionProvider",
    short="cpu",
    device="cpu",
    tag="cpu",
    needs="nothing but a processor",
    builds=tuple(
        dict.fromkeys(
            (PLAIN, *(build for entry in _BESIDE_THE_CPU for build in entry.builds if build is not web.BUILD))
        )
    ),
    plugins=(*(plugin for entry in _BESIDE_THE_CPU for plugin in entry.plugins if not plugin.beside), genai.PACKAGE),
    meter="processor",
)
# our own entries; those of installed third-party packages follow
OWN = (CPU, *_BESIDE_THE_CPU)
OUTSIDE = outside.group(OWN).load_installed()
PROVIDERS = (*OWN, *OUTSIDE.entries)
