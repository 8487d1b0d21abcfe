"""The partitioner that Inductor calls with each joint graph, when storage types are to be chosen.

The partition is Inductor's or the user's own. Only then it is known what is saved for backward
and what is computed again, so only then types can be chosen for it: on both graphs at once, see
`stitch`. A graph without backward gets the same passes after Inductor's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from torch import fx

from . import _torch, composites, log
from .joint_pass import JointPass, Run, is_training, stage
from .stitch import Stitched

Pair = tuple[fx.GraphModule, fx.GraphModule]


class StitchedPass(JointPass):
    """Like JointPass, with the passes that choose storage types."""

    checks_loss_scale = False  # the joint pass did
    needs_cost_model = True

    def pipeline(self) -> str:
        """The passes to run, "" for none."""
        return self.options.partition_pipeline()

    def kind(self, graph: fx.Graph) -> str:
        """ "stitched"."""
        return "stitched"

    def _identity(self) -> str:
        digest = hashlib.sha256(self.pipeline().encode()).hexdigest()
        return f"{type(self).__name__}-{digest}-{super()._identity()}"


class StoragePass(StitchedPass):
    """The same for a graph that has no backward: Inductor calls it after its own passes."""

    def kind(self, graph: fx.Graph) -> str:
        """ "storage"."""
        return "storage"

    def __call__(self, graph: fx.Graph) -> None:
        """Rewrite `graph` in place, unless a partitioner will see it."""
        if not self.pipeline() or is_training(graph):
            return
        if any(map(_torch.is_tangent, graph.find_nodes(op="placeholder"))):
            return
        run = self.run(graph)
        if run.changed:
            run.expand()


class Partitioner(_torch.CustomPartitionerFn):
    """Partitions as `inner` does (Inductor itself if None), then runs `passes` on the pair."""

    def __init__(
        self, passes: StitchedPass, inner: _torch.CustomPartitionerFn | None = None
    ) -> None:
        self.passes = passes
        self.inner = inner

    def __getstate__(self) -> dict[str, Any]:
        """For PyTorch's keys: ours by identity, another one as it would be without us."""
        return {"uuid": self.passes.uuid(), "inner": self.inner}

    def __deepcopy__(self, memo: dict[int, Any]) -> Partitioner:
        """Itself: PyTorch's keys are made of a copy of the settings, which hold it."""
        return self

    def uuid(self) -> Any:
        """Covers all that decides about code; None turns caches off."""
        mine = self.passes.uuid()
        if self.inner is None or mine is None:
            return mine
        theirs = self.inner.uuid()
        return None if theirs is None else (mine, theirs)

    def __call__(self, gm: fx.GraphModule, joint_inputs: Sequence[object], **kwargs: Any) -> Pair:
        """The forward and the backward graph. Whatever fails, they are right ones."""
        partition = self.inner or _torch.partition
        pair = partition(gm, joint_inputs, **kwargs)
        run = _PairRun(self.passes, pair, kwargs["num_fwd_outputs"])
        run.attempt()
        return pair


class _PairRun(Run):
    """A stitched pair's way through the stages."""

    def __init__(self, owner: StitchedPass, pair: Pair, result_count: int) -> None:
        super().__init__(owner, pair[0].graph)
        self.pair = pair
        self.result_count = result_count

    def rewrite(self) -> None:
        """Rewrite both modules in place, or leave both as they are."""
        stitched = self._stitch()
        before = _saved_bytes(stitched)
        with stage("stitch"):
            self.changed = bool(self.owner.pipeline()) and stitched.repeat_constants() > 0
        super().rewrite()
        if self.changed:
            with stage("expand"):
                table = _torch.decomposition_table(self.owner.patches)
                log.counters["expanded"] += composites.expand(self.graph, table)
            with stage("split"):
                stitched.split()
        log.counters["partitions"] += 1
        log.counters["saved_bytes_before"] += before
        log.counters["saved_bytes"] += _saved_bytes(stitched)

    def _stitch(self) -> Stitched:
        with stage("stitch"):
            stitched = Stitched(*self.pair, self.result_count)
        self.graph = stitched.graph
        return stitched

    def graph_to_try(self) -> fx.Graph:
        """The pair, stitched again."""
        stitched = Stitched(*self.pair, self.result_count)
        stitched.repeat_constants()
        return stitched.graph

    def _failure_bundle(self) -> Any:
        self._stitch()  # the graph may have changed since it was traced
        return super()._failure_bundle()


def _saved_bytes(stitched: Stitched) -> int:
    """Bytes of what is kept for backward and would not live on anyway."""
    nodes = [item.node for item in stitched.saved]
    return sum(_torch.byte_count(n.meta.get("val")) for n in nodes if n.op != "placeholder")
