"""Parameters of which each rank holds a piece (DTensor, as FSDP2 and tensor parallelism make),
and what ranks tell each other before a step: one sum of squares, and whether to skip.

Every rank of a mesh takes part in each exchange, with or without gradients of its own: what
is exchanged, and in which order, depends on the parameters alone, which are the same on all.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from .. import log

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup
    from torch.distributed.device_mesh import DeviceMesh

INF, NAN = 1, 2


class Spread(NamedTuple):
    """Over which ranks the elements of a parameter lie."""

    mesh: DeviceMesh | None = None
    """None: every rank has the whole parameter."""
    replicas: int = 1
    """How many ranks of the mesh hold each element."""


WHOLE = Spread()


PLAIN = frozenset((Tensor, torch.nn.Parameter))


def is_dtensor(tensor: Tensor) -> bool:
    """True if `tensor` is a DTensor."""
    if type(tensor) in PLAIN:
        return False
    module = sys.modules.get("torch.distributed.tensor")  # while it is not loaded there are none
    return module is not None and isinstance(tensor, module.DTensor)


def local(tensor: Tensor) -> Tensor:
    """The piece of `tensor` on this rank, the same memory; a tensor of one process as it is."""
    if not is_dtensor(tensor):
        return tensor
    from .. import _torch

    return _torch.local_tensor(tensor)


def why_misplaced(param: Tensor, grad: Tensor) -> str:
    """Why pieces of a gradient cannot be brought to those of its parameter; "" if they can."""
    if not is_dtensor(param) and not is_dtensor(grad):
        return ""
    if not (is_dtensor(param) and is_dtensor(grad)):
        return f"a gradient of class {type(grad).__name__} for a {type(param).__name__}"
    if _placement(param)[0] != _placement(grad)[0]:
        return "a gradient on another device mesh than its parameter"
    if any(placement.is_partial() for placement in _placement(param)[1]):
        return f"a parameter placed as {_placement(param)[1]}"
    return ""


def settle(params: Iterable[Tensor]) -> None:
    """Bring each gradient to where its parameter lies; the ranks exchange what is missing.

    Under sequence parallelism every rank has a summand of the gradient of a norm's weight.
    """
    for param in filter(is_dtensor, params):
        grad: Any = param.grad
        if grad is None or lie_together(param, grad) or why_misplaced(param, grad):
            continue
        log.counters["gradients_moved"] += 1
        with torch.no_grad():
            param.grad = grad.redistribute(placements=_placement(param)[1])


def lie_together(one: Tensor, other: Tensor) -> bool:
    """True if each rank has the same piece of both."""
    if not (is_dtensor(one) and is_dtensor(other)):
        return is_dtensor(one) == is_dtensor(other)
    return _placement(one) == _placement(other)


def _placement(tensor: Any) -> tuple[Any, tuple[Any, ...]]:
    return tensor.device_mesh, tuple(tensor.placements)


def spread_of(param: Tensor) -> Spread:
    """Where the elements of `param` lie."""
    if not is_dtensor(param):
        return WHOLE
    mesh, placements = _placement(param)
    replicas = 1
    for dim, placement in enumerate(placements):
        if placement.is_replicate():
            replicas *= mesh.size(dim)
    return Spread(mesh, replicas)


def spreads_of(params: Iterable[Tensor]) -> list[Spread]:
    """The different ones, in the order of the parameters, after `WHOLE`."""
    return [WHOLE, *dict.fromkeys(spread_of(param) for param in params if is_dtensor(param))]


def stand_ins(params: Iterable[Tensor]) -> list[Tensor]:
    """Leaves without use but for their gradients, which are the pieces of those of `params`,
    as real numbers; parameters that need none stand for themselves."""
    params = list(params)
    settle(params)
    needed = {param: needs_stand_in(param) for param in params if param.grad is not None}
    grads = [
        _real(local(param.grad)) for param in needed if needed[param] and param.grad is not None
    ]
    leaves = [grad.detach() for grad in grads]
    for leaf, grad in zip(leaves, grads, strict=True):
        leaf.grad = grad
    return leaves + [param for param, is_needed in needed.items() if not is_needed]


def needs_stand_in(param: Tensor) -> bool:
    """True if PyTorch's scaler cannot read the gradient of `param` as it is."""
    if is_dtensor(param):
        return True
    grad = param.grad
    return grad is not None and grad.is_complex() and grad.layout is torch.strided


def _real(tensor: Tensor) -> Tensor:
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def agree(
    sums: Mapping[Spread, float], flags: int, group: ProcessGroup | None = None
) -> tuple[float, int]:
    """Sum of squares over all pieces, and the flags of all ranks; the same on every rank.

    `sums`: of this rank's pieces, with an entry for every spread of the optimizer's
    parameters. A replicated element counts once. Whole parameters count once, too: as the
    mean over the ranks of the largest mesh. `group`: flags are shared over this one as well.
    One reduction for one mesh that is flat or has all ranks; else one for each dimension.
    """
    meshes = _meshes(sums)
    total = sums.get(WHOLE, 0.0)
    shared = dict.fromkeys(meshes, 0.0)
    for spread, value in sums.items():
        if spread.mesh is not None:
            shared[spread.mesh] += value / spread.replicas
    if meshes:
        shared[meshes[-1]] += total / meshes[-1].size()
        total = 0.0
    for mesh, part in shared.items():
        for each in _groups(mesh):
            part, flags = _reduced(part, flags, each)
        total += part
    for each in _further(group, meshes):
        _, flags = _reduced(0.0, flags, each)
    return total, flags


def agree_on_device(totals: Tensor, spreads: list[Spread], group: ProcessGroup | None) -> Tensor:
    """`agree` without a read by the host: each spread has a sum of squares and counts of infs
    and NaNs in a row of `totals`; returns those of all ranks. One reduction for one mesh that
    is flat or has all ranks, and none where nothing is shared."""
    meshes = _meshes(spreads)
    if len(spreads) == 1 and not meshes and group is None:
        return totals[0]
    counts = totals[:, 1:].sum(0)
    shared: dict[DeviceMesh | None, Tensor] = {None: totals[spreads.index(WHOLE), 0]}
    for mesh in meshes:
        of_mesh = [(n, s.replicas) for n, s in enumerate(spreads) if s.mesh == mesh]
        shared[mesh] = torch.stack([totals[n, 0] / replicas for n, replicas in of_mesh]).sum()
    if meshes:
        shared[meshes[-1]] = shared[meshes[-1]] + shared[None] / meshes[-1].size()
        shared[None] = torch.zeros_like(shared[None])
    for mesh in meshes:
        for each in _groups(mesh):
            message = torch.cat([shared[mesh].view(1), counts])
            message = _all_reduce(message, torch.distributed.ReduceOp.SUM, each)
            shared[mesh], counts = message[0], message[1:]
    for each in _further(group, meshes):
        counts = _all_reduce(counts.clone(), torch.distributed.ReduceOp.SUM, each)
    return torch.cat([torch.stack(list(shared.values())).sum().view(1), counts])


def agree_on_found(found: Tensor, spreads: Iterable[Spread], group: ProcessGroup | None) -> Tensor:
    """The largest flag of all ranks, on the device of `found`, without a read by the host."""
    meshes = _meshes(spreads)
    groups = [each for mesh in meshes for each in _groups(mesh)]
    for each in [*groups, *_further(group, meshes)]:
        found = _all_reduce(found, torch.distributed.ReduceOp.MAX, each)
    return found


def _meshes(spreads: Iterable[Spread]) -> list[DeviceMesh]:
    """Small ones first: flags of a part then reach all ranks of the whole."""
    meshes = dict.fromkeys(spread.mesh for spread in spreads)
    return sorted((m for m in meshes if m is not None), key=lambda mesh: mesh.size())


def _groups(mesh: DeviceMesh) -> list[ProcessGroup]:
    """Groups over which to reduce, one after the other, to have reduced over `mesh`."""
    if mesh.get_coordinate() is None:
        return []  # this rank has no part in it
    if mesh.size() == torch.distributed.get_world_size():
        world = torch.distributed.group.WORLD
        return [] if world is None else [world]
    return mesh.get_all_groups()


def _further(group: ProcessGroup | None, meshes: list[DeviceMesh]) -> list[ProcessGroup]:
    """`group`, unless a reduction over `meshes` goes over it anyhow."""
    if group is None or any(group in _groups(mesh) for mesh in meshes):
        return []
    return [group]


def _reduced(sum_of_squares: float, flags: int, group: ProcessGroup) -> tuple[float, int]:
    """One sum over the group for both."""
    message = [sum_of_squares, float(flags & INF != 0), float(flags & NAN != 0)]
    values = torch.tensor(message, dtype=torch.float64)
    values = _all_reduce(values, torch.distributed.ReduceOp.SUM, group)
    total, infs, nans = values.tolist()
    return total, (INF if infs else 0) | (NAN if nans else 0)


def _all_reduce(values: Tensor, op: Any, group: ProcessGroup) -> Tensor:
    from .. import _torch

    log.counters["update_reductions"] += 1
    there = values.to(_torch.collective_device(group, values.device))
    torch.distributed.all_reduce(there, op=op, group=group)
    return there.to(values.device)
