"""Partitioned pairs of graphs, caught and edited where mpopt's storage passes run."""

from __future__ import annotations

import contextlib
from unittest import mock

import torch
from mpopt import _torch, partition
from mpopt.backend import mpopt
from mpopt.partition import StitchedPass
from mpopt.stitch import Stitched
from torch import fx

BF16, F32 = torch.bfloat16, torch.float32
CONVERT = _torch.CONVERT


class StopError(Exception):
    """The pair is made; nothing after it is of interest."""


def facts(graph):
    """All that later steps can see of each node."""
    return [
        (n.op, n.name, str(n.target), str(n.args), str(n.kwargs), {**n.meta}) for n in graph.nodes
    ]


def assert_same(before, after):
    """Two results of `facts` are the same, metadata by identity or equality."""
    assert [row[:5] for row in before] == [row[:5] for row in after]
    for one, other in zip(before, after, strict=True):
        assert one[5].keys() == other[5].keys(), one[1]
        for key, value in one[5].items():
            assert value is other[5][key] or value == other[5][key], (one[1], key)


@contextlib.contextmanager
def edited(edit=None, *, text="", stop=False):
    """Storage passes are the pipeline `text`; then `edit` changes each stitched graph.

    Gives a list, to which each pair is added as (forward, backward, number of results). With
    `stop`, compilation ends there.
    """
    pairs = []

    class Edited(partition._PairRun):
        def rewrite(self):
            super().rewrite()
            if edit is not None:
                stitched = Stitched(*self.pair, self.result_count)
                edit(stitched)
                stitched.split()
            pairs.append((*self.pair, self.result_count))
            if stop:
                raise StopError

    with (
        # No key of a cache knows of `edit`.
        torch._inductor.config.patch(force_disable_caches=edit is not None),
        mock.patch.object(StitchedPass, "pipeline", return_value=text),
        mock.patch.object(partition, "_PairRun", Edited),
        contextlib.suppress(*((Exception,) if stop else ())),
    ):
        yield pairs


def relaxed(gm, inputs, **kwargs):
    """The backend with storage passes; a function, so that `torch.compile` takes it."""
    return mpopt(gm, inputs, options={"numerics": "relaxed", **kwargs.pop("options", {})})


def same(stitched):
    """An edit that changes nothing."""


def forward_convert(graph, node, dtype, tag):
    """A conversion of `node` as the exporter would add it, before the first reader."""
    with graph.inserting_after(node):
        new = graph.call_function(CONVERT, (node, dtype))
    new.meta = {k: v for k, v in node.meta.items() if k not in ("desc", "tensor_meta")}
    new.meta |= {"val": node.meta["val"].to(dtype), "partitioner_tag": tag}
    return new


def narrow_saved(stitched):
    """Save each f32 activation as bf16: backward reads what is left of it."""
    readers = stitched.is_backward
    for item in stitched.saved:
        node, value = item.node, item.node.meta["val"]
        if node.op == "placeholder" or not is_f32(value):
            continue
        narrow = forward_convert(stitched.graph, node, BF16, "is_forward")
        wide = forward_convert(stitched.graph, narrow, F32, "is_forward")
        for user in [user for user in node.users if user in readers]:
            user.replace_input_with(node, wide)


def is_f32(value):
    """True for a tensor of that type with dimensions."""
    return isinstance(value, torch.Tensor) and value.dtype is F32 and value.dim() > 1


def copied(graph_module):
    """A copy that later changes do not reach."""
    return fx.GraphModule(graph_module, _copy_of(graph_module.graph))


def _copy_of(graph):
    new = fx.Graph()
    env = {}
    for node in graph.nodes:
        env[node] = new.node_copy(node, env.__getitem__)
    return new


def saved_of(forward, count):
    """The nodes that forward saves."""
    return list(forward.graph.output_node().args[0][count:])
