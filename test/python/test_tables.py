"""The tables against what they are about: PyTorch's operators and our own documents.

ForeachOps.def says that an operator over lists is a loop, ScaleRules.def how an operator's
result follows a factor of its operands. Both are run here on numbers.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

ROOT = Path(__file__).parents[2]
DEFINE = re.compile(r"#define (\w+)\(([\w, ]*)\)((?:[^\n]*\\\n)*[^\n]*)")
STRING = r'"(?:[^"\\]|\\.)*"'


def rows(file: str, macro: str) -> list[list[str]]:
    """The arguments of each use of `macro`, after the other macros of the file."""
    text = re.sub(r"//[^\n]*", "", (ROOT / file).read_text())
    macros = {m[1]: (m[2].split(", "), m[3].replace("\\\n", " ")) for m in DEFINE.finditer(text)}
    text = re.sub(r"#undef[^\n]*", "", DEFINE.sub("", text))
    for name, (parameters, body) in macros.items():
        text = re.sub(
            rf"\b{name}\(([^()]*)\)",
            lambda use, p=parameters, b=body: _substitute(b, p, _arguments(use[1])),
            text,
        )
    return [
        ["".join(re.findall(STRING, argument)).replace('"', "") or argument for argument in found]
        for found in map(_arguments, re.findall(rf"\b{macro}\(([^()]*)\)", text))
    ]


def _arguments(text: str) -> list[str]:
    return [part.strip() for part in re.findall(rf"(?:{STRING}|[^,])+", text)]


def _substitute(body: str, parameters: list[str], arguments: list[str]) -> str:
    values = dict(zip(parameters, arguments, strict=True))
    return re.sub(r"\b[A-Z]+\b", lambda word: values.get(word[0], word[0]), body)


def operator(name: str) -> Any:
    """The overload "aten.add.Tensor"."""
    found: Any = torch.ops
    for part in name.split("."):
        found = getattr(found, part)
    return found


FOREACH = rows("dialect/IR/ForeachOps.def", "MP_FOREACH_ROW")
SCALE = dict(rows("dialect/IR/ScaleRules.def", "MP_SCALE_ROW"))


def test_the_tables_were_read():
    assert len(FOREACH) > 50
    assert len({row[0] for row in FOREACH}) == len(FOREACH)
    assert len(SCALE) == len(rows("dialect/IR/ScaleRules.def", "MP_SCALE_ROW")) > 40


# --- operators over lists ----------------------------------------------------


def pairs(parameters: str) -> list[tuple[str, str]]:
    return [(old, new) for old, _, new in (p.partition("=") for p in parameters.split(" "))]


@pytest.mark.parametrize(("list_name", "single_name", "parameters"), FOREACH)
def test_parameters_of_a_list_operator(list_name, single_name, parameters):
    schema, single = operator(list_name)._schema, operator(single_name)._schema
    types = {a.name: str(a.type) for a in schema.arguments}
    single_types = {a.name: str(a.type) for a in single.arguments}
    named = pairs(parameters)
    # All of them, in schema order: one that is left out would be dropped silently.
    assert [old for old, _ in named] == list(types)
    assert not any(a.alias_info and a.alias_info.is_write for a in schema.arguments)
    for old, new in named:
        element = re.sub(r"^List\[(.*)\]$", r"\1", types[old])
        assert single_types[new] in (element, f"Optional[{element}]")
    for argument in single.arguments:
        assert argument.name in dict(map(reversed, named)) or argument.has_default_value()


ORDINARY = [1.0, 1.25, 1.375, 1.5, 1.625, 1.75, 1.875]
SPECIAL = [-1.5, 0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1e-7]


def arguments_for(
    schema: torch.FunctionSchema, dtype: torch.dtype, numbers: list[float]
) -> dict[str, Any]:
    """Lists of a vector and a matrix of `numbers`, turned for each parameter, and scalars."""
    given: dict[str, Any] = {}
    for turn, argument in enumerate(schema.arguments):
        turned = torch.tensor(numbers[turn:] + numbers[:turn], dtype=dtype)
        values = {
            "List[Tensor]": [turned[:3], turned[3:].view(2, 2)],
            "List[number]": [0.25, 1.5],
            "Tensor": turned[0],
            "number": 2 if argument.name == "ord" else 0.75,
        }
        if str(argument.type) in values:
            given[argument.name] = values[str(argument.type)]
    return given


@pytest.mark.parametrize("numbers", [ORDINARY, SPECIAL], ids=["ordinary", "special"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(("list_name", "single_name", "parameters"), FOREACH)
def test_a_list_operator_is_its_loop(list_name, single_name, parameters, dtype, numbers):
    call, single = operator(list_name), operator(single_name)
    given = arguments_for(call._schema, dtype, numbers)
    whole = call(**given)
    assert len(whole) == 2
    for i, expected in enumerate(whole):
        element = {
            new: given[old][i] if isinstance(given[old], list) else given[old]
            for old, new in pairs(parameters)
            if old in given
        }
        result = single(**element)
        assert result.dtype == expected.dtype
        torch.testing.assert_close(result, expected, rtol=0, atol=0, equal_nan=True)
        numbered = ~expected.isnan()
        assert torch.equal(result.signbit()[numbered], expected.signbit()[numbered])


# --- how operators carry the loss scale ---------------------------------------


@pytest.mark.parametrize("name", SCALE)
def test_the_operator_of_a_scale_row_exists(name):
    assert operator(name).overloads()


VECTOR, MATRIX, BATCH = (3,), (2, 2), (1, 2, 2)
CONVOLUTION = ((1, 1, 4), (1, 1, 2), (1,))
NO_TRANSPOSE: tuple[Any, ...] = ([1], [0], [1], False, [0], 1)
# An overload, the shapes of its float operands, and what comes behind them.
SAMPLES: dict[str, tuple[str, tuple[tuple[int, ...], ...], tuple[Any, ...]]] = {
    **{f"aten.{n}": ("Tensor", (VECTOR,) * 2, ()) for n in ("add", "sub", "rsub", "mul", "div")},
    "aten.true_divide": ("Tensor", (VECTOR,) * 2, ()),
    "aten.clamp": ("Tensor", (VECTOR,) * 3, ()),
    "aten.clamp_max": ("Tensor", (VECTOR,) * 2, ()),
    "aten.clamp_min": ("Tensor", (VECTOR,) * 2, ()),
    "aten.hypot": ("default", (VECTOR,) * 2, ()),
    "aten.lerp": ("Tensor", (VECTOR,) * 3, ()),
    "aten.dot": ("default", (VECTOR,) * 2, ()),
    "aten.vdot": ("default", (VECTOR,) * 2, ()),
    "aten.addmm": ("default", (MATRIX,) * 3, ()),
    "aten.baddbmm": ("default", (BATCH,) * 3, ()),
    "aten.addbmm": ("default", (MATRIX, BATCH, BATCH), ()),
    "aten.addmv": ("default", ((2,), MATRIX, (2,)), ()),
    "aten.addr": ("default", (MATRIX, (2,), (2,)), ()),
    "aten.addcmul": ("default", (VECTOR,) * 3, ()),
    "aten.addcdiv": ("default", (VECTOR,) * 3, ()),
    "aten.linear": ("default", (MATRIX, MATRIX, (2,)), ()),
    "aten.convolution": ("default", CONVOLUTION, NO_TRANSPOSE),
    "aten._convolution": ("default", CONVOLUTION, (*NO_TRANSPOSE, False, False, False, False)),
    "aten.conv1d": ("default", CONVOLUTION, ()),
    "aten.conv2d": ("default", ((1, 1, 3, 3), (1, 1, 2, 2), (1,)), ()),
    "aten.conv3d": ("default", ((1, 1, 3, 3, 3), (1, 1, 2, 2, 2), (1,)), ()),
    "aten.threshold_backward": ("default", (VECTOR,) * 2, (1.5,)),
    "aten.pow": ("Tensor_Scalar", (VECTOR,), (3,)),
    "aten.var": ("correction", (VECTOR,), ()),
    "aten.atan2": ("default", (VECTOR,) * 2, ()),
    "aten.eq": ("Tensor", (VECTOR,) * 2, ()),
    "aten.ne": ("Tensor", (VECTOR,) * 2, ()),
    **{
        f"aten.{n}": ("default", (VECTOR,), ())
        for n in "reciprocal sqrt rsqrt square sign sgn isfinite isinf isnan".split()
    },
}
# Exponents of the operands' units, and that of the result's.
UNITS: dict[str, tuple[tuple[int, ...], int]] = {
    "Same": ((4, 4, 4), 4),
    "Blend": ((4, 4, 0), 4),
    "Carried": ((4, 0), 4),
    "Product": ((2, 4), 6),
    "ProductPlusBias": ((2, 4, 6), 6),
    "SumOfProduct": ((6, 2, 4), 6),
    "SumOfQuotient": ((-2, 2, 4), -2),
    "Quotient": ((6, 2), 4),
    "Inverse": ((4,), -4),
    "Root": ((4,), 2),
    "InverseRoot": ((4,), -2),
    "Square": ((2,), 4),
    "Power": ((2,), 6),  # the third
    "Free": ((4, 4), 0),
}
PROMISES_NOTHING = {"Unknown", "None", "NewScale"}
OF_THEIR_OWN = {"Update"}


def names_by(*rules):
    return [name for name, rule in SCALE.items() if rule in rules]


@pytest.mark.parametrize("name", names_by(*{*SCALE.values()} - PROMISES_NOTHING - OF_THEIR_OWN))
def test_a_result_follows_the_scale_of_the_operands(name):
    overload, shapes, rest = SAMPLES[name]
    units, result_unit = UNITS[SCALE[name]]
    generator = torch.Generator().manual_seed(0)
    operands = [torch.rand(s, generator=generator, dtype=torch.float64) + 1 for s in shapes]
    scaled = [x * 2.0**unit for x, unit in zip(operands, units, strict=False)]
    call = operator(f"{name}.{overload}")
    result, expected = call(*scaled, *rest), call(*operands, *rest)
    torch.testing.assert_close(result, expected * 2.0**result_unit if result_unit else expected)
    # A promise that holds for any result would be none.
    if result_unit:
        assert expected.abs().max() > 0


def updated(name, scale):
    """The weight after an update of gradients that are multiplied by `scale`."""
    call = operator(f"{name}_.default")
    generator = torch.Generator().manual_seed(0)
    numbers = {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "lr_decay": 0.0, "weight_decay": 0.01}
    numbers |= {"eps": 1e-8, "momentum": 0.9, "dampening": 0.0}
    given = {"grad_scale": torch.tensor(scale), "found_inf": torch.tensor(0.0)}
    for argument in call._schema.arguments:
        if argument.name in ("max_exp_avg_sqs",):
            given[argument.name] = []
        elif argument.name == "state_steps":
            given[argument.name] = [torch.tensor(1.0)]
        elif str(argument.type) == "List[Tensor]":
            given[argument.name] = [torch.rand(64, generator=generator)]
        elif argument.name not in given:
            given[argument.name] = numbers.get(argument.name, False)
    given["grads"][0].mul_(scale)
    before = given["self"][0].clone()
    call(**given)
    assert not torch.equal(before, given["self"][0])
    return given["self"][0]


@pytest.mark.parametrize("name", names_by("Update"))
def test_an_update_divides_its_gradients_by_the_scale(name):
    assert torch.equal(updated(name, 1024.0), updated(name, 1.0))


# --- documents ----------------------------------------------------------------


def test_each_rule_has_a_section_with_its_contract():
    rules = {name: contract for _, name, contract, _ in rows("passes/Rules.def", "MP_RULE")}
    text = (ROOT / "passes/docs/Rules.md").read_text()
    assert len(rules) > 10
    assert dict(re.findall(r"^## ([\w-]+) \((\w+)\)$", text, re.MULTILINE)) == rules


HALVES = {"Both": "f16, bf16", "F16": "f16", "BF16": "bf16"}


def test_the_document_of_pins_lists_each_rule():
    rules = [
        (name, HALVES[halves], text)
        for _, name, halves, text in rows("passes/Pins/PinRules.def", "MP_PIN_RULE")
    ]
    document = (ROOT / "passes/docs/Pins.md").read_text()
    assert len(rules) > 25
    assert re.findall(r"^\| `([\w-]+)` \| ([\w, ]+) \| (.+) \|$", document, re.MULTILINE) == rules


def test_each_pin_rule_has_a_test():
    cases = "".join(f.read_text() for f in (ROOT / "test/Passes").glob("pin-*.mlir"))
    rules = [name for _, name, _, _ in rows("passes/Pins/PinRules.def", "MP_PIN_RULE")]
    assert [
        n for n in rules if not re.search(rf'^// [A-Z0-9]+: .*"{n}"', cases, re.MULTILINE)
    ] == []


# Registered by Inductor when it is imported.
OF_INDUCTOR = {"prims.inductor_random", "prims.prepare_softmax_online"}
PIN_OPS = [row for row in rows("passes/Pins/PinOps.def", "MP_PIN_OP") if row[0] not in OF_INDUCTOR]


def test_the_operators_of_pins_exist():
    roles = rows("passes/Pins/PinPatterns.def", "MP_PIN_ROLE")
    ranges = rows("passes/Pins/RangeRules.def", "MP_RANGE_ROW")
    names = {row[0] for table in (PIN_OPS, roles, ranges) for row in table} - OF_INDUCTOR
    assert len(names) > 120
    for name in names:
        assert operator(name) is not None
    known = {row[0] for row in rows("dialect/IR/OpTable.def", "MP_OP_ROW")}
    assert [n for n in names if not {n, ".".join(n.split(".")[:2])} & known] == []


@pytest.mark.parametrize("row", [row for row in PIN_OPS if len(row) > 4], ids=lambda row: row[0])
def test_the_results_that_a_row_pins_exist_and_are_floats(row):
    schema = operator(row[0] + ".default")._schema
    for index in row[4:]:
        assert str(schema.returns[int(index)].type) == "Tensor"
        assert schema.returns[int(index)].name not in ("reserve", "philox_seed", "unused")


def test_each_constraint_has_a_negative_test():
    labels = re.findall(
        r"^- \*\*(\w+_c\d+)\*\*", (ROOT / "dialect/docs/Spec.md").read_text(), re.MULTILINE
    )
    cases = "".join(f.read_text() for f in (ROOT / "test/Dialect").glob("invalid*.mlir"))
    assert len(labels) > 15
    assert [label for label in labels if f"@{label}" not in cases] == []
