"""`mpopt bisect` on programs, scripts and graphs whose culprit is known."""

from __future__ import annotations

import json
import os
import re
import sys
import textwrap
from pathlib import Path

import mpopt
import pytest
from eager_code import step
from models import Transformer, words
from mpopt import rewrite_log
from mpopt.bisect.checks import ExitStatus, Metric, Predicate, Run
from mpopt.bisect.search import Verdict
from mpopt.bisect.session import Bisection
from mpopt.bisect.subjects import Program
from mpopt.commands import BAD_INPUT, DIFFERENT, OK, main
from mpopt.errors import MpoptError
from test_tool import find_tool

GOOD, BAD, SKIP = Verdict.GOOD, Verdict.BAD, Verdict.SKIP


def entry(number, **more):
    return {
        "number": number,
        "graph": "joint",
        "pass": "mp-eliminate-casts",
        "rule": "drop-autocast-rounding",
        "contract": "precise",
        "module": f"layers.{number}",
        "op": "mp.cast",
        "node": 10 * number,
        "source": f"model.py:{number}",
        "why": "every reader widens it",
        **more,
    }


class Fake:
    """A subject with 20 rewrites that prints what `loss` says."""

    name = "fake"

    def __init__(self, loss, status=lambda n: 0, rewrites=20):
        self.loss, self.status, self.rewrites, self.count = loss, status, rewrites, 0

    def run(self, limit):
        self.count += 1
        applied = self.rewrites if limit is None else min(limit, self.rewrites)
        entries = [entry(n + 1) for n in range(applied)]
        return Run(limit, self.status(applied), f"loss {self.loss(applied)}\n", "", entries)


def bisect(subject, check=None, **more):
    lines = []
    finding = Bisection(subject, check or Metric(r"loss (\S+)", 0, 0.01), lines.append, **more)
    return finding.find(), lines


@pytest.mark.parametrize("culprit", [1, 7, 19, 20])
def test_the_culprit_is_named(culprit):
    subject = Fake(lambda n: 2.0 + 0.5 * (n >= culprit))
    finding, lines = bisect(subject)
    assert finding.status == "found" and finding.notes == []
    assert [e["module"] for e in finding.culprits] == [f"layers.{culprit}"]
    assert subject.count == len(lines) <= 3 + 5 + 2 + 2
    assert lines[0] == "first 0 rewrites: good (2, 0 x what is allowed)"


def test_many_small_steps_are_told():
    finding, _ = bisect(Fake(lambda n: 2.0 + 0.001 * n))
    assert finding.culprits[0]["number"] == 11
    assert any("others moved the result as well" in note for note in finding.notes)


def test_a_result_that_comes_back_is_told():
    finding, _ = bisect(Fake(lambda n: 2.0 + (4 <= n <= 9 or n == 20)), probes=20)
    assert finding.culprits[0]["number"] == 4
    assert any("good again with 10, 11" in note for note in finding.notes)


def test_runs_that_say_nothing_leave_a_range():
    subject = Fake(lambda n: 2.0 + (n >= 9), status=lambda n: 125 if 6 <= n <= 10 else 0)
    finding, _ = bisect(subject)
    assert finding.status == "range"
    assert [e["number"] for e in finding.culprits] == [6, 7, 8, 9, 10, 11]


def test_other_graphs_from_run_to_run_are_told():
    class Unsteady(Fake):
        def run(self, limit):
            run = super().run(limit)
            run.entries = [{**e, "module": f"run{self.count}"} for e in run.entries]
            return run

    finding, _ = bisect(Unsteady(lambda n: 2.0 + (n >= 9)))
    assert any("do not compile the same graphs" in note for note in finding.notes)


@pytest.mark.parametrize(
    ("subject", "status", "text"),
    [
        (Fake(lambda n: 2.0), "good", "good with all 20 rewrites"),
        (Fake(lambda n: 2.0, rewrites=0), "no rewrites", "nothing to find"),
        (Fake(lambda n: 2.0, status=lambda n: 125), "unusable", "without rewrites: exit status"),
        (Fake(lambda n: 2.0, status=lambda n: n // 20), "unusable", "with all rewrites: exit"),
    ],
)
def test_ends_that_cannot_be_halved(subject, status, text):
    finding, _ = bisect(subject)
    assert finding.status == status and text in finding.text and finding.culprits == []


def test_a_number_that_does_not_repeat_is_noise():
    numbers = iter(range(100))
    finding, lines = bisect(Fake(lambda n: float(next(numbers))))
    assert finding.status == "noise" and "fix the seeds" in finding.text
    assert len(lines) == 3


def test_a_limit_that_the_script_sets_itself_is_an_error():
    class Deaf(Fake):
        def run(self, limit):
            return super().run(None)

    with pytest.raises(MpoptError, match="20 rewrites were applied although none was allowed"):
        bisect(Deaf(lambda n: 2.0))


# Checks --------------------------------------------------------------------------------------


def judge(check, output, status=0, reference="loss 2.0\n"):
    return check.judge(Run(3, status, output, "boom\n"), Run(0, 0, reference))


@pytest.mark.parametrize(
    ("output", "verdict"),
    [
        ("loss 2.01\n", GOOD),
        ("loss 2.03\n", BAD),
        ("loss 1.97\n", BAD),
        ("loss nan\n", BAD),
        ("loss inf\n", BAD),
        ("loss 2.0\nloss 2.0\n", BAD),
    ],
)
def test_metric(output, verdict):
    assert judge(Metric(r"loss (\S+)", 0.01, 0), output).verdict is verdict


def test_metric_compares_all_numbers():
    check = Metric(r"loss (\S+)", 0, 0.1)
    found = judge(check, "loss 1\nloss 2.5\nloss 3\n", reference="loss 1\nloss 2\nloss 3\n")
    assert found.verdict is BAD and found.text == "2.5 for 2, 5 x what is allowed"
    assert judge(check, "loss nan\n", reference="loss nan\n").verdict is GOOD
    assert judge(check, "loss 2\n", status=1).verdict is SKIP


@pytest.mark.parametrize(
    ("pattern", "output", "message"),
    [
        ("loss (", "", "--metric 'loss ('"),
        ("(loss) (.*)", "", "more than one group"),
        (r"accuracy (\S+)", "loss 2\n", "finds nothing in the output of the run with 3 rewrites"),
        (r"(\w+) 2", "loss 2\n", "could not convert string to float"),
    ],
)
def test_bad_metrics(pattern, output, message):
    with pytest.raises(MpoptError) as error:
        judge(Metric(pattern, 0, 1), output, reference="loss 2\naccuracy 1\n")
    assert message in str(error.value)


def test_exit_status():
    verdicts = [judge(ExitStatus(), "", status).verdict for status in (0, 1, 125, -11)]
    assert verdicts == [GOOD, BAD, SKIP, BAD]


def test_predicate(tmp_path):
    file = tmp_path / "check.py"
    file.write_text("def short(text): return len(text) < 9\ndef odd(text): return 1\n")
    assert judge(Predicate(f"{file}:short"), "loss 2\n").verdict is GOOD
    assert judge(Predicate(f"{file}:short"), "loss 2.000\n").verdict is BAD
    with pytest.raises(MpoptError, match="returned 1, not True or False"):
        judge(Predicate(f"{file}:odd"), "")
    for spec, message in [
        (f"{file}:long", "has no function 'long'"),
        (f"{tmp_path}/none.py:f", "no Python file"),
        ("check.py", "takes FILE.py:FUNCTION"),
    ]:
        with pytest.raises(MpoptError, match=message):
            Predicate(spec)


# Processes -----------------------------------------------------------------------------------

STAND_IN = """
import json, os, sys
limit = int(os.environ.get("MPOPT_BISECT_LIMIT", "99"))
applied = 0 if os.environ.get("MPOPT_DISABLE") == "1" else min(limit, 12)
with open(os.environ.get("MPOPT_REWRITE_LOG", os.devnull), "a") as file:
    for number in range(1, applied + 1):
        file.write(json.dumps(ENTRY | {"number": number, "module": f"layers.{number}"}) + "\\n")
"""


@pytest.fixture
def stand_in(tmp_path):
    """Writes a program that "applies" 12 rewrites; `body` says what comes of it."""

    def write(body):
        path = tmp_path / "program.py"
        path.write_text(f"ENTRY = {entry(0)!r}\n" + STAND_IN + body)
        return f"{sys.executable} {path}"

    return write


def test_command(stand_in, tmp_path, capsys):
    command = stand_in("print('step 1 loss=', 3.5 + (applied >= 5))")
    report = tmp_path / "report.json"
    words = ["bisect", "--loss-distance", "0.1", "--json", str(report), "--command", command]
    assert main(words) == OK
    out, err = capsys.readouterr()
    assert out.startswith("rewrite 5 of 12 moves the result\n")
    for text in (
        "rewrite     5: drop-autocast-rounding (precise)",
        "module      layers.5",
        "source      model.py:0",
        'without it  options={"numerics": "strict"}',
        'without it  options={"disable_passes": ["mp-eliminate-casts"]}',
    ):
        assert text in out
    assert "first 5 of 12 rewrites: bad (4.5 for 3.5, 10 x what is allowed)" in err
    found = json.loads(report.read_text())
    assert (found["schema"], found["status"], found["bad"], found["good"]) == (1, "found", 5, 4)
    assert found["culprits"][0]["module"] == "layers.5"
    assert {run["limit"] for run in found["runs"]} >= {0, 4, 5, None}


def test_exit_status_of_a_command(stand_in, capsys):
    assert main(["bisect", "--command", stand_in("sys.exit(applied >= 12)")]) == OK
    assert "rewrite 12 of 12" in capsys.readouterr().out
    assert main(["bisect", "--command", stand_in("")]) == DIFFERENT
    assert "good with all 12 rewrites" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("sys.exit(1)", "and bad with MPOPT_DISABLE=1: mpopt is not the reason"),
        ("sys.exit(os.environ.get('MPOPT_DISABLE') != '1')", "not a rewrite moves the result"),
    ],
)
def test_bad_without_rewrites(stand_in, body, text, capsys):
    assert main(["bisect", "--command", stand_in(body)]) == DIFFERENT
    assert text in capsys.readouterr().out


def test_processes_that_hang_or_are_ended(stand_in):
    hung = Program(stand_in("import time\ntime.sleep(60)").split(), "hung", timeout=0.5)
    assert hung.run(3).timed_out
    ended = Program(stand_in("os.kill(os.getpid(), 9)").split(), "ended")
    with pytest.raises(MpoptError, match="with 3 rewrites was ended by SIGKILL"):
        ended.run(3)
    with pytest.raises(MpoptError, match="cannot start '/no/such/program'"):
        Program(["/no/such/program"], "none").run(0)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "needs a SCRIPT, a GRAPH or --command"),
        (["nothing.py"], "no script and no graph 'nothing.py'"),
        (["nothing.mlir"], "nothing.mlir: no such file"),
        (["--command", "true", "x.py"], "--command or 'x.py', not both"),
        (["--metric", "x", "--loss-distance", "1", "x.py"], "exclude each other"),
        (["--rtol", "-1", "x.py"], "'-1' is not a number from 0 on"),
        (["--probs", "1", "x.py"], "unexpected '--probs'; did you mean '--probes'?"),
        (["--command", "true", "--rtol", "1"], "--rtol and --atol need --metric"),
    ],
)
def test_bad_words(words, message, capsys):
    assert main(["bisect", *words]) == BAD_INPUT
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


# The backend's own numbers ---------------------------------------------------------------------

SCRIPT = """
import sys
sys.path.insert(0, sys.argv[2])
import torch
from eager_code import step

class Redundant(torch.nn.Module):
    def forward(self, x):
        return x.float().bfloat16() * 2

assert __name__ == "__main__" and sys.argv[1] == "--tests"
noise = torch.randn(3)
x = torch.ones(4, 8).bfloat16()
for _ in range(2):  # two graphs, and Dynamo is reset before each
    *_, graphs = step(Redundant, (x,), train=False, autocast=None)
    targets = [str(node.target) for graph in graphs for node in graph.graph.nodes]
    conversions = sum("convert_element_type" in target for target in targets)
print("noise", noise.sum().item())
# Bad once the pair of the second graph is gone.
print("metric", 5.0 if conversions < 1 else 1.0)
"""


def test_script(tmp_path, capsys, monkeypatch):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    tests = str(Path(__file__).parent)
    monkeypatch.setenv("PYTHONPATH", str(Path(mpopt.__file__).parents[1]))
    report = tmp_path / "report.json"
    options = ["--metric", r"(?:noise|metric) (\S+)", "--no-confirm", "--probes", "0"]
    words = ["bisect", *options, "--json", str(report), str(script), "--tests", tests]
    assert main(words) == OK, capsys.readouterr()
    found = json.loads(report.read_text())
    # Each graph has one rewrite; that of the second one is the culprit.
    assert found["notes"] == [] and found["bad"] == found["rewrites"] == 2
    culprit = found["culprits"][0]
    assert culprit["rule"] == "fold-exact-round-trip" and culprit["pass"] == "mp-eliminate-casts"
    assert culprit["graph"] == "inference" and culprit["op"] == "mp.cast"
    assert culprit["source"].startswith(f"{script}:") and culprit["fx"]


def test_numbers_go_on_once_they_are_in_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr(rewrite_log, "_applied", 0)
    monkeypatch.setattr(rewrite_log, "_is_listed", False)
    rewrite_log.add([{}, {}], "")
    assert rewrite_log.left(5) == 3
    mpopt.reset()
    assert rewrite_log.left(5) == 5
    file = tmp_path / "list.jsonl"
    rewrite_log.add([{"rule": "a"}, {"rule": "b"}], str(file))
    mpopt.reset()
    rewrite_log.add([{"rule": "c"}], str(file))
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(e["number"], e["rule"]) for e in lines] == [(1, "a"), (2, "b"), (3, "c")]
    assert {e["process"] for e in lines} == {os.getpid()}


# Graphs --------------------------------------------------------------------------------------

GRAPH = """
#a = loc("layers.0"("net.py":3:0))
#b = loc("layers.1"("net.py":7:0))
func.func @f(%x: tensor<8xbf16>, %y: tensor<8xf32>) -> (tensor<8xbf16>, tensor<8xf32>) {
  %0 = mp.cast %x origin(user) : tensor<8xbf16> to tensor<8xf32> loc(#a)
  %1 = mp.cast %0 origin(user) : tensor<8xf32> to tensor<8xbf16> loc(#a)
  %2 = mp.cast %1 origin(user) : tensor<8xbf16> to tensor<8xf32> loc(#a)
  %3 = mp.cast %2 origin(user) : tensor<8xf32> to tensor<8xbf16> loc(#a)
  %z = mp.aten "aten.neg.default"(%3) : (tensor<8xbf16>) -> tensor<8xbf16> loc(#a)
  %4 = mp.cast %y origin(autocast) : tensor<8xf32> to tensor<8xbf16> loc(#b)
  %5 = mp.cast %4 origin(autocast) : tensor<8xbf16> to tensor<8xf32> loc(#b)
  %6 = mp.aten "aten.neg.default"(%5) : (tensor<8xf32>) -> tensor<8xf32> loc(#b)
  return %z, %6 : tensor<8xbf16>, tensor<8xf32>
}
"""


@pytest.fixture
def graph(tmp_path, monkeypatch):
    monkeypatch.setenv("MPOPT_TOOL", find_tool())
    path = tmp_path / "graph.mlir"
    path.write_text(textwrap.dedent(GRAPH))
    return str(path)


def test_graph(graph, capsys):
    assert main(["bisect", graph, "--rtol", "1e-4"]) == OK
    out = capsys.readouterr().out
    assert "drop-autocast-rounding (precise)" in out and "module      layers.1" in out


def test_graph_against_f64(graph, capsys):
    # A rounding less moves the result, but towards the exact one.
    assert main(["bisect", "--against", "f64", graph]) == DIFFERENT
    assert "good with all" in capsys.readouterr().out


def test_graph_under_strict(graph, capsys):
    assert main(["bisect", graph, "--numerics=strict", "--rtol=0"]) == DIFFERENT
    assert "good with all" in capsys.readouterr().out


def test_bundle(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("MPOPT_TOOL", find_tool())
    step(Transformer, words(), dump=str(tmp_path))
    assert (
        main(["bisect", "--numerics=strict", "--rtol=0", str(tmp_path / "000_joint")]) == DIFFERENT
    )
    assert re.match(r"good with all \d+ rewrites: distance 0,", capsys.readouterr().out)


def test_graph_that_cannot_be_evaluated(graph, capsys):
    Path(graph).write_text(GRAPH.replace("aten.neg.default", "mylib.op.default"))
    assert main(["bisect", graph]) == BAD_INPUT
    assert "mylib.op.default has no evaluator" in capsys.readouterr().err
