"""The pass that Inductor calls with each joint or inference graph.

Import, run the passes, export, expand what was kept whole. Whatever fails, the
graph that goes on is one that Inductor compiles to the right result: as traced,
with the composites expanded.
"""

from __future__ import annotations

import functools
import gc
import hashlib
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import fx

from . import (
    _torch,
    barriers,
    composites,
    embedding_gradient,
    exporter,
    failing_regions,
    half_weights,
    hot_regions,
    importer,
    kernels,
    log,
    loss_scale,
    machine,
    native,
    range_keys,
    rewrite_log,
)
from .attributes import quoted
from .dump import Bundle
from .errors import StageError, UnsupportedError
from .options import Options
from .origins import Capture
from .policy import Policy

if TYPE_CHECKING:
    from ._mpopt import Module


class JointPass(_torch.CustomGraphPass):
    """One per call of the backend. `patches` are the user's settings of Inductor."""

    checks_loss_scale = True

    @property
    def needs_cost_model(self) -> bool:
        """True if the passes choose types by what they cost."""
        return bool(self.options.precision)

    def __init__(
        self, options: Options, capture: Capture, patches: dict[str, Any], relax: bool
    ) -> None:
        self.options = options
        self.capture = capture
        self.patches = patches
        self.relax_barriers = relax

    def pipeline(self) -> str:
        """The passes to run, "" for none."""
        return self.options.pass_pipeline()

    def kind(self, graph: fx.Graph) -> str:
        """What the graph is called in dumps: the name of the function in the module."""
        return "joint" if is_training(graph) else "inference"

    def __getstate__(self) -> dict[str, Any]:
        """Identity only: PyTorch pickles settings, which hold this pass, for its keys."""
        return {"uuid": self.uuid()}

    def uuid(self) -> str | None:
        """Covers all that decides about code; None, which turns caches off, when a
        graph that comes from a cache would miss its dump or its count of rewrites."""
        options = self.options
        if options.dump or options.rewrite_log or options.bisect_limit is not None:
            return None
        return self._identity()

    def _identity(self) -> str:
        parts = (
            sources_digest(),
            native.load().version(),
            native.library_digest(),
            self._codegen_digest(),
            self.options.digest(),
            composites.recipe_digest(),
            self.capture.digest(),
            str(self.relax_barriers),
        )
        return "mpopt-" + hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def _codegen_digest(self) -> str:
        """Of the code generator, where it decides which regions become kernels."""
        return kernels.digest() if self.options.regions != "off" else ""

    def __call__(self, graph: fx.Graph) -> None:
        """Rewrite `graph` in place; it always ends as one that Inductor can compile."""
        log.counters["graphs"] += 1
        if self.options.ranges:
            range_keys.mark(graph, self.capture.inputs)
        half_weights.substitute(graph, self.capture.halves)
        self.run(graph).expand()
        if self.pipeline():
            _torch.keep_roundings(graph)

    def run(self, graph: fx.Graph) -> Run:
        """Rewrite `graph`, or leave it as it was and say so."""
        run = Run(self, graph)
        run.attempt()
        return run


class Run:
    """One graph's way through the stages."""

    def __init__(self, owner: JointPass, graph: fx.Graph) -> None:
        self.owner = owner
        self.options = owner.options
        self.graph = graph
        self.module: Module | None = None
        self.bundle: Bundle | None = None
        self.pass_of: list[str] = []
        """The pass behind each rewrite, where passes run one by one."""
        self.changed = False
        self.left_out: list[str] = []
        """Modules that stay as they were traced, for a rewrite of them failed."""

    def pipeline(self) -> str:
        """The passes to run, "" for none."""
        return self.owner.pipeline()

    def attempt(self) -> None:
        """Rewrite the graph but for what fails, or leave it as it was, and say so."""
        try:
            with _without_gc():
                self.rewrite()
        except UnsupportedError as error:
            self.fall_back(StageError("import", str(error)), error)
        except StageError as error:
            if not self._leave_out(error):
                self.fall_back(error, error.__cause__ or error)

    def _leave_out(self, error: StageError) -> bool:
        """Rewrite all but the modules whose rewrites fail; False if that does not help."""
        if self.options.strict or self.module is None or not self.pipeline():
            return False
        command = ""
        while len(self.left_out) < failing_regions.MOST:
            region = failing_regions.first_failing(self._try)
            if not region or region in self.left_out:
                break
            command = command or self._reproduction()  # while the graph is as traced
            self.left_out.append(region)
            try:
                self.rewrite()
            except (StageError, UnsupportedError):
                continue
            self._say_left_out(error, command)
            return True
        self.left_out.clear()
        return False

    def _try(self, limit: int) -> tuple[list[dict[str, Any]], bool]:
        """The stages with the first `limit` rewrites, on a copy of the graph."""
        graph, records = self.graph_to_try(), list[dict[str, Any]]()
        try:
            imported = importer.import_graph(graph, self.owner.capture, self.left_out)
            module = self._module_of(imported, limit)
            for step in native.load().pipeline_passes(self.pipeline()):
                module.run(step)
                records = _applied(module.rewrites())
            edits = module.edits()
            if not exporter.is_empty(edits, imported):
                exporter.apply_edits(graph, imported, edits)
        except Exception:
            return records, False
        return records, True

    def graph_to_try(self) -> fx.Graph:
        """A copy of the graph as it is."""
        copy = fx.Graph()
        copy.owning_module = self.graph.owning_module
        copy.output(copy.graph_copy(self.graph, {}))
        copy.output_node().meta = dict(self.graph.output_node().meta)
        return copy

    def _say_left_out(self, error: StageError, command: str) -> None:
        self._count(error.stage)
        log.counters["fallback_regions"] += len(self.left_out)
        names = ", ".join(map(repr, self.left_out))
        text = (
            f"mpopt failed in stage {error.stage!r}; module {names} stays as it was traced, and "
            f"the rest is optimised (fallback {log.counters['fallbacks']}): "
            f"{error.__cause__ or error}"
        )
        log.warn(f"{text}\n  reproduce: {command}" if command else text)

    def rewrite(self) -> None:
        """The stages up to the graph's changes. Raises what a stage raises."""
        with stage("import"):
            imported = importer.import_graph(self.graph, self.owner.capture, self.left_out)
        if self.owner.checks_loss_scale:
            loss_scale.check(imported, self.options.strict)
        with stage("build"):
            self.module = self._module_of(imported)
        self._open_bundle()
        with stage("passes"):
            self._run_passes(self.module)
        with stage("kernels"):
            hot_regions.settle(self.module, self.graph, self.options.strict)
        with stage("export"):
            edits = self.module.edits()
            if not exporter.is_empty(edits, imported):
                exporter.apply_edits(self.graph, imported, edits)
                self.changed = True
        with stage("barriers"):
            if self.owner.relax_barriers:
                barriers.relax(self.graph)
        self._record(self.module.rewrites(), imported)

    def _module_of(self, imported: importer.Imported, limit: int | None = None) -> Module:
        return native.module_type().from_graph(
            imported.inputs,
            imported.nodes,
            imported.outputs,
            sources=imported.sources,
            name=self.owner.kind(self.graph),
            attributes=self._attributes(limit),
        )

    def _attributes(self, limit: int | None = None) -> str:
        """What the passes are told; with `limit`, to apply so many rewrites only."""
        target = self.options.target
        if target == "auto":
            target = device_of(self.graph)
        text = f'mp.target = "{target}"'
        if self.owner.needs_cost_model:
            model = machine.resolve(self.options.cost_model, target)
            text += f", mp.cost_model = {json.dumps(model)}"
        if limit is None and self.options.bisect_limit is not None:
            limit = rewrite_log.left(self.options.bisect_limit)
        if limit is not None:
            text += f", mp.rewrite_limit = {limit}"
        if self.options.policy is not None:
            text += ", " + policy_attribute(self.options.policy)
        return "{" + text + "}"

    def _run_passes(self, module: Module) -> None:
        text = self.pipeline()
        if not self.bundle and not self.options.rewrite_log:
            if text:
                module.run(text)
            return
        for step in native.load().pipeline_passes(text) if text else ():
            module.run(step)
            name = _pass_name(step)
            self._dump_stage(name)
            new = len(_applied(module.rewrites())) - len(self.pass_of)
            self.pass_of += [name] * new

    def _record(self, rewrites: list[dict[str, Any]], imported: importer.Imported) -> None:
        applied = _applied(rewrites)
        log.counters["rewrites"] += len(applied)
        for entry in rewrites:
            if entry.get("rule") == "unmatched-policy-rule":
                _warn_of_rule(entry["why"])
        logger = log.get_logger("passes")
        logger.info("%d nodes, %d rewrites", len(imported.nodes), len(applied))
        logger.debug("seconds so far by stage: %s", dict(log.seconds))
        self._list(applied, imported)
        self._close_bundle(rewrites, "ok")

    def _list(self, applied: list[dict[str, Any]], imported: importer.Imported) -> None:
        path = self.options.rewrite_log
        kind = self.owner.kind(self.graph) if path else ""
        entries = applied if not path else self._with_places(applied, imported, kind)
        with self._dumping():
            rewrite_log.add(entries, path)

    def _with_places(
        self, applied: list[dict[str, Any]], imported: importer.Imported, kind: str
    ) -> list[dict[str, Any]]:
        """Entries with what a reader needs to find the operator."""
        names = self.pass_of if len(self.pass_of) == len(applied) else [""] * len(applied)
        found = []
        for entry, name in zip(applied, names, strict=True):
            place = {"graph": kind, "pass": name, "fx": "", "source": ""}
            node = entry.get("node", -1)
            if 0 <= node < len(imported.nodes):
                place["fx"] = imported.fx_nodes[node].name
                place["source"] = _source_text(imported, node)
            found.append({**place, **{k: v for k, v in entry.items() if k != "status"}})
        return found

    # Dumps: a full disk must not stop a compilation --------------------------

    def _open_bundle(self) -> None:
        if self.options.dump:
            with self._dumping():
                self.bundle = Bundle(self.options.dump, self.owner.kind(self.graph))
                self._dump_stage("import")

    def _dump_stage(self, name: str) -> None:
        if self.bundle and self.module:
            with self._dumping():
                self.bundle.stage(name, module_text(self.module))

    def _close_bundle(self, rewrites: list[dict[str, Any]], status: str) -> None:
        if self.bundle and self.module:
            with self._dumping():
                self.bundle.finish(module_text(self.module), rewrites, self._meta(), status)

    @contextmanager
    def _dumping(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.bundle = None
            self._count("dump")
            if self.options.strict:
                raise StageError("dump", str(error)) from error
            log.warn(f"mpopt: cannot write the dump: {error}")

    def _meta(self) -> dict[str, Any]:
        return {
            "torch": torch.__version__,
            "mpopt": native.load().version(),
            "nodes": len(self.graph.nodes),
            "autocast": self.owner.capture.autocast,
            "backward_pass_autocast": _torch.backward_pass_autocast(),
            "options": self.options.as_dict(),
            "pipeline": self.pipeline(),
            "uuid": self.owner._identity(),
        }

    # Failures ---------------------------------------------------------------

    def fall_back(self, error: StageError, cause: BaseException) -> None:
        """Count and report a failure; raise it under `strict`. The graph is as traced."""
        self._count(error.stage)
        self._close_bundle([], f"failed in {error.stage}: {cause}")
        if self.options.strict:
            raise error from cause
        text = (
            f"mpopt failed in stage {error.stage!r} and this graph is compiled without it "
            f"(fallback {log.counters['fallbacks']}): {cause}"
        )
        command = self._reproduction()
        log.warn(f"{text}\n  reproduce: {command}" if command else text)

    def _count(self, stage: str) -> None:
        log.counters["fallbacks"] += 1
        log.counters[f"fallbacks.{stage}"] += 1

    def _reproduction(self) -> str:
        """The command that runs the same passes on the same graph; "" before there is a module."""
        if self.module is None:
            return ""
        try:
            path = self.bundle.path if self.bundle else self._failure_bundle()
        except OSError:
            return ""
        passes = self.pipeline()
        return f"mpopt '--pass-pipeline=builtin.module({passes})' {path / '00_import.mlir'}"

    def _failure_bundle(self) -> Path:
        """A bundle of the graph as traced, made after the fact."""
        imported = importer.import_graph(self.graph, self.owner.capture, self.left_out)
        module = self._module_of(imported)
        bundle = Bundle(tempfile.mkdtemp(prefix="mpopt-failure-"), "graph")
        bundle.stage("import", module_text(module))
        return bundle.path

    # The composites ---------------------------------------------------------

    def expand(self) -> None:
        """Expand what was kept whole. An operator that fails goes to Inductor whole."""
        table = _torch.decomposition_table(self.owner.patches)
        try:
            with stage("expand"):
                if self.options.pass_pipeline():
                    log.counters["embedding_sums"] += embedding_gradient.fuse(self.graph, table)
                log.counters["expanded"] += composites.expand(self.graph, table)
        except StageError as error:
            self._count("expand")
            if self.options.strict:
                raise
            log.warn(f"mpopt: {error}; Inductor gets the operators whole, which is slower")


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Times a stage. Turns any failure into a StageError, but for what an importer says on
    purpose."""
    start = time.perf_counter()
    try:
        yield
    except (StageError, UnsupportedError):
        raise
    except Exception as error:
        raise StageError(name, f"{type(error).__name__}: {error}") from error
    finally:
        log.seconds[name] += time.perf_counter() - start


@contextmanager
def _without_gc() -> Iterator[None]:
    """Little that is made here is garbage, and each collection walks all of the graph."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def module_text(module: Module) -> str:
    """The module with locations, as dumps hold it."""
    module.with_locations = True
    return str(module)


def _applied(rewrites: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [entry for entry in rewrites if entry.get("status") == "applied"]


def _source_text(imported: importer.Imported, node: int) -> str:
    """ "model.py:12" of a node's line in the model, or ""."""
    index = imported.nodes[node][5]
    _, file, line = imported.sources[index] if index >= 0 else ("", "", 0)
    return f"{file}:{line}" if file else ""


def policy_attribute(policy: Policy) -> str:
    """The policy as the attribute of a function that `mp-apply-policy` reads."""
    entries = {"file": policy.name, "sha256": policy.sha256, "text": policy.text}
    return "mp.policy = {" + ", ".join(f"{k} = {quoted(v)}" for k, v in entries.items()) + "}"


def _warn_of_rule(why: str) -> None:
    """A rule of the policy matches nothing: count it, and say so once."""
    log.counters["policy_rules_unmatched"] += 1
    if why not in _warned_rules:
        _warned_rules.add(why)
        log.warn(f"mpopt: policy {why}")


_warned_rules: set[str] = set()


def _pass_name(step: str) -> str:
    """ "mp-normalize" of "func.func(mp-normalize{x=1})"."""
    inner = step.rpartition("(")[2].rstrip(")")
    return inner.partition("{")[0].strip()


def is_training(graph: fx.Graph) -> bool:
    """True for a joint graph of forward and backward."""
    return any(importer.is_backward(node) for node in graph.nodes)


def device_of(graph: fx.Graph) -> str:
    """The device type that the graph runs on: "cuda" if any input is there, else "cpu"."""
    values = (n.meta.get("val") for n in graph.find_nodes(op="placeholder"))
    devices = {value.device.type for value in values if isinstance(value, torch.Tensor)}
    return "cuda" if "cuda" in devices else "cpu"


@functools.cache
def sources_digest() -> str:
    """Hash of this package's Python files."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()
