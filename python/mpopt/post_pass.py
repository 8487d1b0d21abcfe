"""The pass that Inductor calls with the forward and the backward graph before it lowers them.

What one kernel can compute is known only here: the partitioner has chosen what is
saved, and no later step merges or moves a node.
"""

from __future__ import annotations

from torch import fx

from . import _torch
from .importer import conversion_target
from .joint_pass import JointPass
from .options import PLACE_STORES


class PostPass(JointPass):
    """Like JointPass, on one phase of the graph and without composites to expand."""

    checks_loss_scale = False  # the joint pass did

    def pipeline(self) -> str:
        """mp-place-stores, unless it is off."""
        if not self.options.pass_pipeline() or PLACE_STORES in self.options.disable_passes:
            return ""
        return f"func.func({PLACE_STORES})"

    def kind(self, graph: fx.Graph) -> str:
        """ "forward", "backward" or "inference"."""
        backward = any(map(_torch.is_tangent, graph.find_nodes(op="placeholder")))
        return "backward" if backward else "forward"

    def __call__(self, graph: fx.Graph) -> None:
        """Rewrite `graph` in place if it holds anything to place."""
        if self.pipeline() and any(map(_narrows, graph.nodes)):
            self.run(graph)

    def _identity(self) -> str:
        return "post-" + super()._identity()


def _narrows(node: fx.Node) -> bool:
    """True for a conversion to a half type: without one there is nothing to place."""
    dtype = conversion_target(node) if node.op == "call_function" else None
    return dtype is not None and dtype.is_floating_point and dtype.itemsize == 2
