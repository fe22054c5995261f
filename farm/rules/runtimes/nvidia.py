"""NVIDIA's entries of the table of execution providers."""

from farm.rules.runtimes.provider import Build, Building, Provider, Signs

_GPU = Build("onnxruntime-gpu", extras="[cuda,cudnn]")
_SIGNS = Signs(systems=("linux", "win32"), machines=("x86_64", "amd64", "aarch64"), files=("/dev/nvidia[0-9]*",))
_ENVIRONMENT = ("CUDA_VISIBLE_DEVICES",)

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

# TensorRT takes signed activations that are symmetric around zero only
_QUANTISED_BY_TENSORRT = {"activation": "int8", "symmetric": "true"}

PROVIDERS: tuple[Provider, ...] = (
    Provider(
        name="CUDAExecutionProvider",
        short="cuda",
        colour=3,
        device="gpu",
        tag="cuda",
        meant_by=("gpu", "nvidia", "geforce"),
        computes_with=("nvidia-", "cuda-"),
        memory="cuda",
        meter="nvidia",
        builds=(_GPU,),
        needs="an NVIDIA GPU whose driver answers; being listed does not prove the provider works",
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
        probe_with="onnxruntime-gpu==1.26.0",
        signs=_SIGNS,
        environment=_ENVIRONMENT,
    ),
    Provider(
        name="TensorrtExecutionProvider",
        short="tensorrt",
        colour=5,
        title="TensorRT",
        device="gpu",
        tag="tensorrt",
        meant_by=("gpu", "nvidia", "geforce"),
        computes_with=("tensorrt",),
        memory="cuda",
        meter="nvidia",
        quantisation=_QUANTISED_BY_TENSORRT,
        aliases=("trt",),
        builds=(_GPU,),
        needs="TensorRT's libraries beside a working CUDA provider",
        options=_TENSORRT_OPTIONS,
        # the profile shapes (min, opt, max) follow the workload; the cache folder is the agent's
        defaults={"trt_engine_cache_enable": "1", "trt_timing_cache_enable": "1"},
        probe_with="onnxruntime-gpu==1.26.0",
        signs=_SIGNS,
        environment=_ENVIRONMENT,
        building=Building(
            cache="trt_engine_cache_path",
            shapes=("trt_profile_min_shapes", "trt_profile_opt_shapes", "trt_profile_max_shapes"),
        ),
    ),
    Provider(
        name="NvTensorRTRTXExecutionProvider",
        short="nvtensorrtrtx",
        colour=4,
        title="TensorRT RTX",
        device="gpu",
        tag="tensorrt-rtx",
        memory="cuda",
        meter="nvidia",
        quantisation=_QUANTISED_BY_TENSORRT,
        aliases=("nv_tensorrt_rtx", "trt-rtx", "tensorrt-rtx"),
        needs="an RTX GPU and the libraries of TensorRT for RTX",
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
        environment=_ENVIRONMENT,
        building=Building(
            cache="nv_runtime_cache_path",
            shapes=("nv_profile_min_shapes", "nv_profile_opt_shapes", "nv_profile_max_shapes"),
        ),
    ),
)
