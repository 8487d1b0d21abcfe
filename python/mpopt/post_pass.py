"""The pass that Inductor calls with the forward and the backward graph before it lowers them.

What one kernel can compute is known only here: the partitioner has chosen what is
saved, and no later step merges or moves a node.
"""

from __future__ import annotations

from torch import fx

from . import _torch, hot_regions
from .importer import conversion_target
from .joint_pass import JointPass, Run
from .options import PLACE_STORES


class PostPass(JointPass):
    """Like JointPass, on one phase of the graph and without composites to expand."""

    checks_loss_scale = False  # the joint pass did

    @property
    def needs_cost_model(self) -> bool:
        """True if regions are chosen by what they cost."""
        return self.options.regions != "off"

    def pipeline(self) -> str:
        """mp-place-stores, unless it is off."""
        return _nested(self._placing())

    def _placing(self) -> list[str]:
        if not self.options.pass_pipeline() or PLACE_STORES in self.options.disable_passes:
            return []
        return [PLACE_STORES]

    def kind(self, graph: fx.Graph) -> str:
        """ "forward", "backward" or "inference"."""
        backward = any(map(_torch.is_tangent, graph.find_nodes(op="placeholder")))
        return "backward" if backward else "forward"

    def __call__(self, graph: fx.Graph) -> None:
        """Make regions of `graph`, then place what is left of it."""
        regions = hot_regions.passes(self.options, graph)
        if regions:
            run = RegionRun(self, graph, _nested(regions))
            run.attempt()
            if run.changed:
                run.expand()
        if self.pipeline() and any(map(_narrows, graph.nodes)):
            self.run(graph)

    def _identity(self) -> str:
        return "post-" + super()._identity()


class RegionRun(Run):
    """The way of a graph through the passes that make regions of it."""

    def __init__(self, owner: JointPass, graph: fx.Graph, text: str) -> None:
        super().__init__(owner, graph)
        self.text = text

    def pipeline(self) -> str:
        """The passes to run."""
        return self.text


def _nested(passes: list[str]) -> str:
    return f"func.func({','.join(passes)})" if passes else ""


def _narrows(node: fx.Node) -> bool:
    """True for a conversion to a half type: without one there is nothing to place."""
    dtype = conversion_target(node) if node.op == "call_function" else None
    return dtype is not None and dtype.is_floating_point and dtype.itemsize == 2
