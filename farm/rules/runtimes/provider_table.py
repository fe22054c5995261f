"""The table of execution providers: one entry a provider.

Names are ONNX Runtime's own. A provider in `get_available_providers()` proves nothing: a node gets a provider's
hardware tag only after a trace has shown it executing. Options that name a path, a library or a pointer are the agent's
to set and are never taken from a matrix.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from farm.rules.runtimes.distributions import EVERY_DISTRIBUTION

Device = Literal["cpu", "gpu", "npu"]

# What every provider's measurements record beside the latency.
ALWAYS_RECORDED = ("active_providers", "time_share")


@dataclass(frozen=True, slots=True)
class Signs:
    """What of a machine makes a probe worth its download; all that is given must hold. It proves nothing.

    `systems`: values of sys.platform. `machines`: architectures. `files`: one of them exists (patterns). `libraries`:
    the loader finds each. `stands_in`: an environment variable of the agent that, set to 1, replaces `files`.
    """

    systems: tuple[str, ...] = ("linux",)
    machines: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    stands_in: str = ""


@dataclass(frozen=True, slots=True)
class Building:
    """A provider that compiles the graph: how its engine is kept and what shapes it is built for.

    `cache`: the option that names the cache folder, which is the agent's to set, so that every launch of a cell loads
    the engine of the first. `shapes`: the options for the smallest, usual and largest shapes, filled from the workload
    where the matrix sets none of them.
    """

    cache: str
    shapes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Provider:
    """One execution provider.

    `title`: what people call it, where that is not ONNX Runtime's name without its ending. `distributions`:
    packages whose build carries it. `plugins`: packages that add it beside plain `onnxruntime`. `detection`: what
    the probe of a node looks at. `options`: the names a matrix may set. `defaults`: what is passed when the matrix
    says nothing. `records`: what to record apart from `ALWAYS_RECORDED`. `has_own_memory`: latency is reported both
    on the device and with host copies. `probe_with`: the build that a probe installs, where plain `onnxruntime` has
    not got the provider, and `signs` of a machine that is worth it; None: the owner has to ask. `environment`:
    names that a runner finds as the agent's owner set them. `building`: see there.
    """

    name: str
    short: str
    device: Device
    tag: str
    detection: str
    title: str = ""
    distributions: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    options: frozenset[str] = frozenset()
    defaults: Mapping[str, str] = field(default_factory=dict)
    records: tuple[str, ...] = ()
    has_own_memory: bool = False
    takes_any_option: bool = False
    probe_with: str = ""
    signs: Signs | None = None
    environment: tuple[str, ...] = ()
    building: Building | None = None

    @property
    def packages(self) -> tuple[str, ...]:
        """Every package that carries this provider, builds before plug-ins."""
        return self.distributions + self.plugins


_X86 = ("x86_64", "amd64")
_NVIDIA = Signs(systems=("linux", "win32"), machines=(*_X86, "aarch64"), files=("/dev/nvidia[0-9]*",))
_ON_NVIDIA = ("CUDA_VISIBLE_DEVICES",)
_ON_AMD = ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")

_TENSORRT_OPTIONS = frozenset(
    {
        "device_id",
        "trt_max_workspace_size",
        "trt_max_partition_iterations",
        "trt_min_subgraph_size",
        "trt_fp16_enable",
        "trt_bf16_enable",
        "trt_int8_enable",
        "trt_engine_cache_enable",
        "trt_timing_cache_enable",
        "trt_builder_optimization_level",
        "trt_cuda_graph_enable",
        "trt_build_heuristics_enable",
        "trt_sparsity_enable",
        "trt_profile_min_shapes",
        "trt_profile_opt_shapes",
        "trt_profile_max_shapes",
        "trt_layer_norm_fp32_fallback",
        "trt_context_memory_sharing_enable",
    }
)

PROVIDERS: tuple[Provider, ...] = (
    Provider(
        name="CPUExecutionProvider",
        short="cpu",
        device="cpu",
        tag="cpu",
        distributions=EVERY_DISTRIBUTION,
        detection="in every build; a trace of the probe model on it",
    ),
    Provider(
        name="XnnpackExecutionProvider",
        short="xnnpack",
        title="XNNPACK",
        device="cpu",
        tag="xnnpack",
        detection="listed by the node's own build; a trace shows it executing",
        options=frozenset({"intra_op_num_threads"}),
        records=("threads",),
    ),
    Provider(
        name="ACLExecutionProvider",
        short="acl",
        device="cpu",
        tag="acl",
        aliases=("armcl",),
        detection="listed by the node's own Arm build; a trace shows it executing",
        options=frozenset({"enable_fast_math"}),
    ),
    Provider(
        name="CUDAExecutionProvider",
        short="cuda",
        device="gpu",
        tag="cuda",
        distributions=("onnxruntime-gpu",),
        detection="a driver that answers and a trace that shows it executing; the provider list is no evidence",
        options=frozenset(
            {
                "device_id",
                "gpu_mem_limit",
                "arena_extend_strategy",
                "cudnn_conv_algo_search",
                "cudnn_conv_use_max_workspace",
                "cudnn_conv1d_pad_to_nc1d",
                "do_copy_in_default_stream",
                "enable_cuda_graph",
                "tunable_op_enable",
                "tunable_op_tuning_enable",
                "use_tf32",
                "prefer_nhwc",
                "fuse_conv_bias",
                "sdpa_kernel",
                "use_ep_level_unified_stream",
            }
        ),
        records=("driver", "cuda_version", "gpu", "compute_capability", "copies"),
        has_own_memory=True,
        probe_with="onnxruntime-gpu==1.26.0",
        signs=_NVIDIA,
        environment=_ON_NVIDIA,
    ),
    Provider(
        name="TensorrtExecutionProvider",
        short="tensorrt",
        title="TensorRT",
        device="gpu",
        tag="tensorrt",
        aliases=("trt",),
        distributions=("onnxruntime-gpu",),
        detection="TensorRT's libraries beside a working CUDA provider; a trace shows it executing",
        options=_TENSORRT_OPTIONS,
        # the profile shapes (min, opt, max) follow the workload; the cache folder is the agent's
        defaults={"trt_engine_cache_enable": "1", "trt_timing_cache_enable": "1"},
        records=("driver", "cuda_version", "tensorrt_version", "first_build_ms", "cached_build_ms", "engine_bytes"),
        has_own_memory=True,
        probe_with="onnxruntime-gpu==1.26.0",
        signs=_NVIDIA,
        environment=_ON_NVIDIA,
        building=Building(
            cache="trt_engine_cache_path",
            shapes=("trt_profile_min_shapes", "trt_profile_opt_shapes", "trt_profile_max_shapes"),
        ),
    ),
    Provider(
        name="NvTensorRTRTXExecutionProvider",
        short="nvtensorrtrtx",
        title="TensorRT RTX",
        device="gpu",
        tag="tensorrt-rtx",
        aliases=("nv_tensorrt_rtx", "trt-rtx", "tensorrt-rtx"),
        detection="an RTX GPU and the TensorRT for RTX libraries; a trace shows it executing",
        options=frozenset(
            {
                "device_id",
                "nv_max_workspace_size",
                "nv_cuda_graph_enable",
                "nv_profile_min_shapes",
                "nv_profile_opt_shapes",
                "nv_profile_max_shapes",
                "nv_multi_profile_enable",
            }
        ),
        records=("driver", "first_build_ms", "cached_build_ms", "engine_bytes"),
        has_own_memory=True,
        environment=_ON_NVIDIA,
        building=Building(
            cache="nv_runtime_cache_path",
            shapes=("nv_profile_min_shapes", "nv_profile_opt_shapes", "nv_profile_max_shapes"),
        ),
    ),
    Provider(
        name="OpenVINOExecutionProvider",
        short="openvino",
        device="cpu",
        tag="openvino",
        aliases=("ov",),
        distributions=("onnxruntime-openvino",),
        plugins=("onnxruntime-ep-openvino",),
        detection="any x86 CPU with its own build; the plug-in asks for Intel hardware; a trace shows it executing",
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
        records=("device_type", "precision_hint", "executed_precision"),
        probe_with="onnxruntime-openvino==1.24.1",
        signs=Signs(machines=_X86),
    ),
    Provider(
        name="CoreMLExecutionProvider",
        short="coreml",
        title="Core ML",
        device="npu",
        tag="coreml",
        distributions=("onnxruntime",),
        detection="macOS; a trace shows it executing",
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
        records=("compute_units",),
        signs=Signs(systems=("darwin",)),
        building=Building(cache="ModelCacheDirectory"),
    ),
    Provider(
        name="MIGraphXExecutionProvider",
        short="migraphx",
        device="gpu",
        tag="migraphx",
        distributions=("onnxruntime-migraphx", "onnxruntime-rocm"),
        detection="an AMD GPU that the ROCm driver lists; a trace shows it executing",
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
        records=("driver", "rocm_version", "gpu", "first_build_ms"),
        has_own_memory=True,
        probe_with="onnxruntime-migraphx==1.27.1",
        signs=Signs(machines=_X86, files=("/dev/kfd",)),
        environment=_ON_AMD,
        building=Building(cache="migraphx_model_cache_dir"),
    ),
    Provider(
        name="ROCMExecutionProvider",
        short="rocm",
        device="gpu",
        tag="rocm",
        distributions=("onnxruntime-rocm",),
        detection="an AMD GPU that the ROCm driver lists; a trace shows it executing",
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
        records=("driver", "rocm_version", "gpu", "copies"),
        has_own_memory=True,
        environment=_ON_AMD,
    ),
    Provider(
        name="DmlExecutionProvider",
        short="directml",
        title="DirectML",
        device="gpu",
        tag="directml",
        aliases=("dml", "DirectMLExecutionProvider"),
        distributions=("onnxruntime-directml",),
        detection="Windows with a DirectX 12 adapter; a trace shows it executing",
        options=frozenset({"device_id", "performance_preference", "device_filter", "disable_metacommands"}),
        records=("gpu", "driver", "copies"),
        has_own_memory=True,
    ),
    Provider(
        name="QNNExecutionProvider",
        short="qnn",
        device="npu",
        tag="qnn",
        # from 2.0 a plug-in, before it a build
        plugins=("onnxruntime-qnn",),
        detection="a Snapdragon device with the named backend; a trace shows it executing",
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
        records=("backend", "soc_model", "first_build_ms"),
    ),
    Provider(
        name="WebGpuExecutionProvider",
        short="webgpu",
        title="WebGPU",
        device="gpu",
        tag="webgpu",
        plugins=("onnxruntime-ep-webgpu",),
        detection="a Vulkan, Metal or DirectX 12 adapter seen by the plug-in; a trace shows it executing",
        options=frozenset(
            {"deviceId", "preferredLayout", "validationMode", "storageBufferCacheMode", "powerPreference"}
        ),
        records=("adapter", "is_software_adapter", "copies"),
        has_own_memory=True,
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
        name="PluginExecutionProvider",
        short="plugin",
        device="npu",
        tag="plugin",
        aliases=("plug-in",),
        detection="the owner's library registers and lists at least one device; a trace shows it executing",
        records=("library_version", "devices"),
        takes_any_option=True,
    ),
)
