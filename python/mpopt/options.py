"""Options: one frozen dataclass, filled from four sources.

Later sources win: defaults, the TOML file named by `MPOPT_CONFIG`, environment
variables `MPOPT_<NAME>`, and `torch.compile(options={...})`. A key that no field
has is an error that names the nearest one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib
import json
import math
import os
from collections.abc import Mapping
from typing import Any

from . import machine
from . import policy as policies
from .digests import file_digest
from .errors import OptionError, did_you_mean

PLACE_STORES = "mp-place-stores"
"""The pass that runs after partitioning, apart from the pipeline of the joint graph."""
OUTLINE = "mp-outline-hot-regions"
"""The pass that chooses regions for our own kernels, where they are wanted."""
PASSES = (
    "mp-normalize",
    "mp-raise",
    "mp-apply-policy",
    "mp-pin",
    "mp-widen-pinned",
    "mp-assign-precision",
    "mp-apply-precision",
    "mp-eliminate-casts",
    "mp-lower",
    "mp-report-casts",
    "mp-plan-saves",
    PLACE_STORES,
    OUTLINE,
)
"""What `disable_passes` can name."""
NUMERICS = ("strict", "precise", "relaxed")
TARGETS = ("auto", "cpu", "cuda")
PRECISIONS = {"": "none", "bf16": "bf16", "fp16": "f16"}
"""Values of `precision` and what the passes call them."""
REGIONS = ("off", "cpu", "auto", "all")
"""Values of `regions`."""
FLAGS = ("strict", "disable", "half_weights", "heal")
_TRUE = {"1", "true", "on", "yes"}
_FALSE = {"", "0", "false", "off", "no"}
_OTHER_VARIABLES = {
    "MPOPT_CONFIG",
    "MPOPT_CUDA_DRIVER",
    "MPOPT_KERNEL_CACHE",
    "MPOPT_KERNEL_DUMP",
    "MPOPT_LOGS",
    "MPOPT_PTXAS",
    "MPOPT_TOOL",
}
_NOT_HASHED = {"dump", "rewrite_log"}
_PATHS = {"dump", "rewrite_log"}


@dataclasses.dataclass(frozen=True)
class Options:
    """How one call of the backend compiles."""

    numerics: str = "precise"
    """Contract of rewrites: "strict" (bit-identical), "precise" (no rounding is added) or
    "relaxed" (storage types are chosen too, within `epsilon`)."""
    epsilon: float = 0.05
    """With "relaxed": the share by which the estimated error of gradients may grow."""
    target: str = "auto"
    """What the graph will run on: "cpu", "cuda", or "auto" for what its tensors say."""
    cost_model: str = "auto"
    """What work costs there: a built-in name such as "sm_90", a file that `mpopt calibrate`
    wrote, or "auto" for the built-in one of this machine."""
    pipeline: str | None = None
    """Pass pipeline; None for mp-default under `numerics`, "" for no pass at all."""
    disable_passes: tuple[str, ...] = ()
    """Passes to leave out by name, such as "mp-eliminate-casts"."""
    bisect_limit: int | None = None
    """Apply only the first n rewrites of the process; turns compile caches off."""
    rewrite_log: str = ""
    """File that gets a line of JSON for each rewrite; turns compile caches off. "" for none."""
    dump: str = ""
    """Folder that gets one bundle per graph; turns compile caches off. "" for none."""
    strict: bool = False
    """Make every fallback an error."""
    disable: bool = False
    """Compile as if the backend were "inductor"."""
    half_weights: bool = True
    """Take the half copies that an optimizer of `mpopt.optim` writes in place of weights."""
    policy: policies.Policy | None = None
    """The user's policy; given as a path, or as a dictionary of the same form. Its `level` is
    the default of `numerics`."""
    precision: str = ""
    """Half type, "bf16" or "fp16", for matrix products, convolutions and attention of fp32
    operands where it pays: what autocast is for, in a program without it. "" leaves them."""
    ranges: str = ""
    """File of `mpopt.calibrate`, which says what does not fit a half type; "" for none."""
    heal: bool = False
    """Compute a region in fp32 once it has made inf or NaN `heal_after` times."""
    heal_after: int = 3
    """How many calls may give inf or NaN before `heal` looks for the region."""
    heal_depth: int = 0
    """Depth of the modules that `heal` takes for regions; 0 for the innermost ones."""
    regions: str = "off"
    """Where hot regions of the graph become kernels of our own: "off", on the "cpu" alone,
    "auto" wherever there is a backend, or "all": there too, whether or not it pays."""
    inductor: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Options for Inductor, as in `torch.compile(backend="inductor", options=...)`."""

    def pass_pipeline(self) -> str:
        """The pipeline text for `Module.run`, "" for none."""
        if self.pipeline is not None:
            return self.pipeline
        # What "relaxed" adds comes after partitioning: see `partition_pipeline`.
        numerics = "precise" if self.numerics == "relaxed" else self.numerics
        half = f" precision={PRECISIONS[self.precision]}" if self.precision else ""
        return f"mp-default{{numerics={numerics}{half}{self._common()}}}"

    def partition_pipeline(self) -> str:
        """The pipeline text for the partitioned graph, "" for none."""
        if self.numerics != "relaxed" or self.pipeline is not None:
            return ""
        return f"mp-partitioned{{numerics=relaxed epsilon={self.epsilon!r}{self._common()}}}"

    def _common(self) -> str:
        """What both pipelines take."""
        ranges = f" ranges={json.dumps(self.ranges)}" if self.ranges else ""
        return ranges + self._disabled()

    def _disabled(self) -> str:
        off = [name for name in self.disable_passes if name not in (PLACE_STORES, OUTLINE)]
        return " disable=" + ",".join(off) if off else ""

    def digest(self) -> str:
        """A text that differs whenever an option that decides about code differs."""
        fields = {k: v for k, v in self.as_dict().items() if k not in _NOT_HASHED}
        fields["cost_model"] = machine.fingerprint(self.cost_model)
        fields["policy"] = self.policy and self.policy.sha256  # whatever its file is called
        if self.ranges:
            fields["ranges"] = file_digest(self.ranges)
        return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()

    def as_dict(self) -> dict[str, Any]:
        """All fields as JSON values; options of Inductor that JSON lacks as text."""
        result = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        result["disable_passes"] = list(self.disable_passes)
        result["policy"] = self.policy and self.policy.as_dict()
        result["inductor"] = {k: _json_value(v) for k, v in sorted(self.inductor.items())}
        return result


def _json_value(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | type(None)) else repr(value)


FIELDS = {field.name: field for field in dataclasses.fields(Options)}


def resolve(given: Mapping[str, Any] | None = None, **more: Any) -> Options:
    """Options from all sources; `given` and `more` win over file and environment.

    Raises OptionError naming the source, the key and what is allowed.
    """
    values: dict[str, Any] = {}
    path = os.environ.get("MPOPT_CONFIG", "")
    if path:
        values.update(_checked(_read_file(path), path))
    values.update(_from_environment(os.environ))
    named = _checked({**(given or {}), **more}, "options")
    values.update(named)
    options = Options(**_defaults_of(values.get("policy"), values), **values)
    if "epsilon" in named and options.numerics != "relaxed":
        raise OptionError(
            f"options: epsilon needs numerics='relaxed', and it is {options.numerics!r}"
        )
    return options


def _defaults_of(policy: policies.Policy | None, values: Mapping[str, Any]) -> dict[str, Any]:
    """What a policy says about options that are not given."""
    if policy is None:
        return {}
    said = {"numerics": policy.level, "epsilon": policy.epsilon}
    missing = {k: v for k, v in said.items() if v is not None and k not in values}
    return _checked(missing, policy.name)


def is_strict() -> bool:
    """True if the environment or the option file turns every fallback into an error."""
    return resolve().strict


def _read_file(path: str) -> dict[str, Any]:
    try:
        tomllib = importlib.import_module("tomllib")
    except ImportError:
        raise OptionError("MPOPT_CONFIG needs Python 3.11, which can read TOML") from None
    try:
        with open(path, "rb") as file:
            return dict(tomllib.load(file))
    except OSError as error:
        raise OptionError(f"MPOPT_CONFIG: cannot read {path!r}: {error.strerror}") from error
    except tomllib.TOMLDecodeError as error:
        raise OptionError(f"{path}: {error}") from error


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, field in FIELDS.items():
        variable = f"MPOPT_{name.upper()}"
        if variable in environ and name != "inductor":
            result[name] = _convert(name, _from_text(field, environ[variable]), variable)
    for variable in environ:
        if variable.startswith("MPOPT_") and not _is_known_variable(variable):
            known = [f"MPOPT_{name.upper()}" for name in FIELDS if name != "inductor"]
            # Build scripts have variables of their own: only a near miss is an error.
            if hint := did_you_mean(variable, [*known, *_OTHER_VARIABLES]):
                raise OptionError(f"unknown environment variable {variable}{hint}")
    return result


def _is_known_variable(variable: str) -> bool:
    name = variable.removeprefix("MPOPT_").lower()
    return variable in _OTHER_VARIABLES or (name in FIELDS and name != "inductor")


def _from_text(field: dataclasses.Field[Any], text: str) -> Any:
    """The value that an environment variable stands for; as text when it is none."""
    kind = str(field.type)
    if kind == "bool" and text.lower() in _TRUE | _FALSE:
        return text.lower() in _TRUE
    if kind.startswith("int") and text.lstrip("-").isdigit():
        return int(text)
    if kind == "float":
        with contextlib.suppress(ValueError):
            return float(text)
    if kind.startswith("tuple"):
        return [item.strip() for item in text.split(",") if item.strip()]
    return text


def _checked(values: Mapping[str, Any], source: str) -> dict[str, Any]:
    result = {}
    for key, value in values.items():
        if key not in FIELDS:
            raise OptionError(f"{source}: unknown option {key!r}{did_you_mean(str(key), FIELDS)}")
        result[key] = _convert(key, value, source)
    return result


def _convert(key: str, value: Any, source: str) -> Any:
    """`value` in the type of field `key`. Raises OptionError naming both."""
    if key in _CHOICES:
        allowed = _CHOICES[key]
        if value not in allowed:
            raise OptionError(f"{source}: {key} must be one of {', '.join(allowed)}, not {value!r}")
        return value
    if key == "precision":
        if value not in PRECISIONS:
            raise OptionError(f"{source}: precision must be bf16 or fp16, not {value!r}")
        return value
    if key == "cost_model":
        return machine.check(value, source)
    if key in FLAGS:
        return _require(isinstance(value, bool), value, key, "true or false", source)
    if key == "epsilon":
        number = isinstance(value, int | float) and not isinstance(value, bool)
        good = number and math.isfinite(value) and value >= 0
        return float(_require(good, value, key, "a number of at least 0", source))
    if key == "bisect_limit":
        number = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        return _require(number or value is None, value, key, "a count of rewrites", source)
    if key in _COUNTS:
        least, wanted = _COUNTS[key]
        number = isinstance(value, int) and not isinstance(value, bool) and value >= least
        return _require(number, value, key, wanted, source)
    if key == "ranges":
        return _ranges_path(value, source)
    if key == "disable_passes":
        items = isinstance(value, list | tuple) and all(isinstance(v, str) for v in value)
        _require(items, value, key, "a list of pass names", source)
        for name in value:
            if name not in PASSES:
                hint = did_you_mean(name, PASSES)
                raise OptionError(f"{source}: {key} has the unknown pass {name!r}{hint}")
        return tuple(value)
    if key == "policy":
        return _policy(value, source)
    if key == "inductor":
        return dict(_require(isinstance(value, Mapping), value, key, "a dictionary", source))
    if key in _PATHS:
        path = _require(isinstance(value, str | os.PathLike), value, key, "a path", source)
        return os.fspath(path)
    return _require(value is None or isinstance(value, str), value, key, "a text", source)


def _policy(value: Any, source: str) -> policies.Policy | None:
    if value is None or value == "":
        return None
    if isinstance(value, policies.Policy):
        return value
    good = isinstance(value, str | os.PathLike | Mapping)
    return policies.load(_require(good, value, "policy", "a path or a dictionary", source))


_CHOICES = {"numerics": NUMERICS, "target": TARGETS, "regions": REGIONS}
"""Values that a field may have."""
_COUNTS = {
    "heal_after": (1, "a count of calls, 1 or more"),
    "heal_depth": (0, "a number of modules"),
}
"""Least value of a field and what it is."""


def _ranges_path(value: Any, source: str) -> str:
    """The file that `value`, a path or a Calibration, stands for; it can be read."""
    path = value.file() if hasattr(value, "file") else value
    wanted = "a path or what mpopt.calibrate returned"
    path = os.fspath(_require(isinstance(path, str | os.PathLike), path, "ranges", wanted, source))
    if not path:
        return ""
    try:
        file_digest(path)
    except OSError as error:
        raise OptionError(f"{source}: ranges: cannot read {path!r}: {error.strerror}") from error
    return os.path.abspath(str(path))


def _require(good: bool, value: Any, key: str, wanted: str, source: str) -> Any:
    if not good:
        raise OptionError(f"{source}: {key} must be {wanted}, not {value!r}")
    return value
