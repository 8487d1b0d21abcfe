"""CUDA's autocast policy on the CPU, so that a graph that a GPU would trace is made here.

CPU autocast promotes neither norms nor softmax nor sums; CUDA's does (`rms_norm` from
2.12). `cuda_policy()` registers CUDA's fp32 and promote lists for CPU tensors and takes
them back at the end. The narrowing list is the CPU's own, which agrees for what tests
use. Operators on the CPU's fp32 list that CUDA lacks (`avg_pool3d`, ...) stay on it.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._inductor import config as inductor_config

# ATen/autocast_mode.h of 2.15; overloads after the dot, "default" without one.
FP32 = """acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan
pow.Tensor_Scalar pow.Tensor_Tensor pow.Scalar softplus layer_norm native_layer_norm rms_norm
group_norm frobenius_norm.dim nuclear_norm nuclear_norm.dim cosine_similarity poisson_nll_loss
cosine_embedding_loss nll_loss nll_loss2d hinge_embedding_loss kl_div l1_loss smooth_l1_loss
huber_loss mse_loss margin_ranking_loss multilabel_margin_loss soft_margin_loss
triplet_margin_loss multi_margin_loss binary_cross_entropy_with_logits dist pdist cdist renorm
logsumexp upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_linear1d
upsample_bilinear2d upsample_trilinear3d upsample_bicubic2d""".split()
FP32_RESULT = """prod prod.dim_int softmax.int log_softmax.int cumprod cumsum linalg_vector_norm
linalg_matrix_norm linalg_matrix_norm.str_ord sum sum.dim_IntList""".split()
PROMOTE = """addcdiv addcmul atan2 bilinear cross dot vdot grid_sampler index_put tensordot
scatter_add""".split()

Kernel = Callable[..., Any]


def _is_eligible(value: Any) -> bool:
    """True for a tensor that autocast may convert: fp64, integer and complex stay."""
    if not isinstance(value, torch.Tensor) or value.device.type != "cpu":
        return False
    return value.is_floating_point() and value.dtype != torch.float64


def _convert(value: Any, dtype: torch.dtype) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(_convert(item, dtype) for item in value)
    return value.to(dtype) if _is_eligible(value) else value


def _tensors(values: Any) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from _tensors(value)
        elif _is_eligible(value):
            yield value


@contextlib.contextmanager
def _autocast_excluded() -> Iterator[None]:
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)
    with torch._C._ExcludeDispatchKeyGuard(keys):
        yield


def _fp32(op: Kernel) -> Kernel:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        with _autocast_excluded():
            wide = {k: _convert(v, torch.float32) for k, v in kwargs.items()}
            return op(*(_convert(a, torch.float32) for a in args), **wide)

    return kernel


def _fp32_result(op: Any) -> Kernel:
    """The `dtype` argument becomes fp32 unless the call gives one."""

    def kernel(*args: Any, **kwargs: Any) -> Any:
        names = [argument.name for argument in op._schema.arguments]
        given = dict(zip(names, args, strict=False)) | kwargs
        with _autocast_excluded():
            if given.get("dtype") is None and _is_eligible(args[0]):
                given["dtype"] = torch.float32
                return op(*args[: names.index("dtype")], **_named(op, given, args))
            return op(*args, **kwargs)

    return kernel


def _named(op: Any, given: dict[str, Any], args: tuple[Any, ...]) -> dict[str, Any]:
    names = [argument.name for argument in op._schema.arguments]
    positional = set(names[: min(len(args), names.index("dtype"))])
    return {k: v for k, v in given.items() if k not in positional}


def _promote(op: Kernel) -> Kernel:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        dtypes = {tensor.dtype for tensor in _tensors([*args, *kwargs.values()])}
        with _autocast_excluded():
            if len(dtypes) < 2:
                return op(*args, **kwargs)
            if dtypes == {torch.float16, torch.bfloat16}:
                raise RuntimeError("Unexpected floating ScalarType in promote")
            wide = {k: _convert(v, torch.float32) for k, v in kwargs.items()}
            return op(*(_convert(a, torch.float32) for a in args), **wide)

    return kernel


def _overload(name: str) -> Any:
    packet, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload or "default")


@contextlib.contextmanager
def cuda_policy() -> Iterator[None]:
    """Autocast for CPU tensors follows CUDA's lists inside, and its own again after.

    Compile caches are off inside: their keys do not see the policy.
    """
    torch._dynamo.reset()
    with (
        inductor_config.patch(force_disable_caches=True),
        torch.library._scoped_library("aten", "IMPL") as library,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")  # "overriding a previously registered kernel"
        for names, wrap in ((FP32, _fp32), (FP32_RESULT, _fp32_result), (PROMOTE, _promote)):
            for name in names:
                library.impl(name, wrap(_overload(name)), "AutocastCPU")
        yield
    torch._dynamo.reset()
