// Each mistake in a policy ends in one error with its place, its key and what to do.
// RUN: split-file %s %t
// RUN: not mpopt policy check %t/key.toml 2>&1 | FileCheck %s --check-prefix=KEY
// KEY: mpopt: error: {{.*}}key.toml:3:1: unknown key 'modul' in {{\[\[rule\]\]}}; did you mean 'module'?
// RUN: not mpopt policy check %t/root.toml 2>&1 | FileCheck %s --check-prefix=ROOT
// ROOT: root.toml:2:1: unknown key 'qqq' in the policy; known: version, level, epsilon, groups, rule, op
// RUN: not mpopt policy check %t/syntax.toml 2>&1 | FileCheck %s --check-prefix=SYNTAX
// SYNTAX: mpopt: error: {{.*}}syntax.toml:2:{{[0-9]+}}: {{.+}}
// RUN: not mpopt policy check %t/version.toml 2>&1 | FileCheck %s --check-prefix=VERSION
// VERSION: version.toml:1:11: 'version' is 2, but this mpopt reads version 1
// RUN: not mpopt policy check %t/noversion.toml 2>&1 | FileCheck %s --check-prefix=NOVERSION
// NOVERSION: noversion.toml:1:1: no 'version'; write 'version = 1'
// RUN: not mpopt policy check %t/level.toml 2>&1 | FileCheck %s --check-prefix=LEVEL
// LEVEL: level.toml:2:9: 'level' must be one of strict, precise, relaxed, not 'relax'; did you mean 'relaxed'?
// RUN: not mpopt policy check %t/epsilon.toml 2>&1 | FileCheck %s --check-prefix=EPSILON
// EPSILON: epsilon.toml:2:11: 'epsilon' must be a finite number of 0 or more
// RUN: not mpopt policy check %t/type.toml 2>&1 | FileCheck %s --check-prefix=TYPE
// TYPE: type.toml:3:6: 'op' must be a text, not a whole number
// RUN: not mpopt policy check %t/table.toml 2>&1 | FileCheck %s --check-prefix=TABLE
// TABLE: table.toml:2:1: 'rule' must be a list of tables, not a table; write {{\[\[rule\]\]}}
// RUN: not mpopt policy check %t/glob.toml 2>&1 | FileCheck %s --check-prefix=GLOB
// GLOB: glob.toml:3:10: 'module' is no pattern: {{.*}}[
// RUN: not mpopt policy check %t/stars.toml 2>&1 | FileCheck %s --check-prefix=STARS
// STARS: stars.toml:3:10: 'module' is no pattern: '**' must be a segment of its own, not part of '**mlp'
// RUN: not mpopt policy check %t/segment.toml 2>&1 | FileCheck %s --check-prefix=SEGMENT
// SEGMENT: segment.toml:3:10: 'module' is no pattern: has an empty segment
// RUN: not mpopt policy check %t/regex.toml 2>&1 | FileCheck %s --check-prefix=REGEX
// REGEX: regex.toml:3:8: 'name' is no regular expression: parentheses not balanced
// RUN: not mpopt policy check %t/line.toml 2>&1 | FileCheck %s --check-prefix=LINE
// LINE: line.toml:3:8: 'line' must be "file.py:123" or "file.py:100-140", not 'net.py:9-3'
// RUN: not mpopt policy check %t/dtype.toml 2>&1 | FileCheck %s --check-prefix=DTYPE
// DTYPE: dtype.toml:3:9: 'dtype' must be one of fp32, {{.*}}, not 'bfloat'; did you mean 'bfloat16'?
// RUN: not mpopt policy check %t/action.toml 2>&1 | FileCheck %s --check-prefix=ACTION
// ACTION: action.toml:2:1: the rule has no 'precision'; write one of fp32, half, keep
// RUN: not mpopt policy check %t/nothing.toml 2>&1 | FileCheck %s --check-prefix=NOTHING
// NOTHING: nothing.toml:2:1: the rule selects nothing; give one of module, op, line, dtype, name
// RUN: not mpopt policy check %t/where.toml 2>&1 | FileCheck %s --check-prefix=WHERE
// WHERE: where.toml:5:9: 'where' must be one of result, operands, both, not 'results'; did you mean 'result'?
// RUN: not mpopt policy check %t/empty.toml 2>&1 | FileCheck %s --check-prefix=EMPTY
// EMPTY: empty.toml:3:10: 'module' is empty
// RUN: not mpopt policy check %t/colons.toml 2>&1 | FileCheck %s --check-prefix=COLONS
// COLONS: colons.toml:3:6: an operator is written with dots: 'aten.mm', not 'aten::mm'
// RUN: not mpopt policy check %t/group.toml 2>&1 | FileCheck %s --check-prefix=GROUP
// GROUP: group.toml:3:11: 'enable' must be one of attention, ffn, {{.*}}, not 'atention'; did you mean 'attention'?
// RUN: not mpopt policy check %t/kind.toml 2>&1 | FileCheck %s --check-prefix=KIND
// KIND: kind.toml:4:8: 'kind' must be one of view, {{.*}}, not 'pointwize'; did you mean 'pointwise'?
// RUN: not mpopt policy check %t/known.toml 2>&1 | FileCheck %s --check-prefix=KNOWN
// KNOWN: known.toml:3:8: 'aten.mm' has a kind already, 'matmul', which other rules rest on
// RUN: not mpopt policy check %t/twice.toml 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: twice.toml:6:8: 'lib.f' has a row already
// RUN: not mpopt policy check %t/missing.toml 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: mpopt: error: {{.*}}missing.toml: cannot read the policy: No such file or directory

// The pass says the same, of a file and of what a function carries.
// RUN: not mpopt %t/graph.mlir --mp-apply-policy=file=%t/key.toml 2>&1 | FileCheck %s --check-prefix=PASS
// PASS: error: {{.*}}key.toml:3:1: unknown key 'modul'
// RUN: not mpopt %t/carried.mlir --mp-apply-policy 2>&1 | FileCheck %s --check-prefix=CARRIED
// CARRIED: error: run.toml:1:1: unknown key 'verson' in the policy; did you mean 'version'?
// RUN: not mpopt %t/digest.mlir --mp-apply-policy 2>&1 | FileCheck %s --check-prefix=DIGEST
// DIGEST: error: 'mp.policy' has a text whose sha256 is {{[0-9a-f]+}}, not 00

//--- key.toml
version = 1
[[rule]]
modul = "a"
precision = "fp32"
//--- root.toml
version = 1
qqq = 2
//--- syntax.toml
version = 1
level =
//--- version.toml
version = 2
//--- noversion.toml
level = "strict"
//--- level.toml
version = 1
level = "relax"
//--- epsilon.toml
version = 1
epsilon = -0.5
//--- type.toml
version = 1
[[rule]]
op = 3
precision = "fp32"
//--- table.toml
version = 1
[rule]
op = "aten.mm"
precision = "fp32"
//--- glob.toml
version = 1
[[rule]]
module = "layers.[0"
precision = "fp32"
//--- stars.toml
version = 1
[[rule]]
module = "**mlp"
precision = "fp32"
//--- segment.toml
version = 1
[[rule]]
module = "layers..mlp"
precision = "fp32"
//--- regex.toml
version = 1
[[rule]]
name = "(layers"
precision = "fp32"
//--- line.toml
version = 1
[[rule]]
line = "net.py:9-3"
precision = "fp32"
//--- dtype.toml
version = 1
[[rule]]
dtype = "bfloat"
precision = "fp32"
//--- action.toml
version = 1
[[rule]]
op = "aten.mm"
//--- nothing.toml
version = 1
[[rule]]
precision = "fp32"
//--- where.toml
version = 1
[[rule]]
op = "aten.mm"
precision = "fp32"
where = "results"
//--- empty.toml
version = 1
[[rule]]
module = ""
precision = "fp32"
//--- colons.toml
version = 1
[[rule]]
op = "aten::mm"
precision = "fp32"
//--- group.toml
version = 1
[groups]
enable = ["atention"]
//--- kind.toml
version = 1
[[op]]
name = "lib.f"
kind = "pointwize"
//--- known.toml
version = 1
[[op]]
name = "aten.mm"
kind = "pointwise"
//--- twice.toml
version = 1
[[op]]
name = "lib.f"
kind = "pointwise"
[[op]]
name = "lib.f"
kind = "view"
//--- graph.mlir
func.func @f() { return }
//--- carried.mlir
func.func @f() attributes {mp.policy = {file = "run.toml", text = "verson = 1"}} { return }
//--- digest.mlir
func.func @f() attributes {mp.policy = {file = "run.toml", sha256 = "00", text = "version = 1"}} { return }
