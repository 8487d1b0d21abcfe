// What is no budget, no graph, or another graph is told in one line.
// RUN: rm -rf %t && mkdir -p %t/dump/000_joint %t/dump/001_inference && cd %t
// RUN: cp %s net.mlir
// RUN: mpopt budget write kept.toml net.mlir

// RUN: not mpopt budget chek kept.toml net.mlir 2>&1 | FileCheck %s --check-prefix=VERB
// VERB: mpopt: error: 'mpopt budget' does 'write' or 'check', not 'chek'; did you mean 'check'?
// RUN: not mpopt budget check kept.toml 2>&1 | FileCheck %s --check-prefix=COUNT
// COUNT: mpopt: error: 'mpopt budget' needs write|check and FILE and GRAPH..., got 2 inputs
// RUN: not mpopt budget check none.toml net.mlir 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: mpopt: error: none.toml: cannot be read: No such file or directory; make it with 'mpopt budget write'
// RUN: not mpopt budget check kept.toml net.mlir --tolerance=2 2>&1 | FileCheck %s --check-prefix=SHARE
// SHARE: mpopt: error: option '--tolerance' takes a share from 0 to 1, such as 0.02, not '2'
// RUN: not mpopt budget write kept.toml net.mlir --tolerance=0.1 2>&1 | FileCheck %s --check-prefix=WRITE
// WRITE: mpopt: error: option '--tolerance' is for 'mpopt budget check'
// RUN: not mpopt budget write x.toml net.mlir net.mlir 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: mpopt: error: two graphs are called 'net.mlir'; name them: NAME=net.mlir

// RUN: sed 's/^schema = 1/schema = 2/' kept.toml > schema.toml
// RUN: sh -c 'mpopt budget check schema.toml net.mlir; test $? = 2' 2>&1 | FileCheck %s --check-prefix=SCHEMA
// SCHEMA: mpopt: error: schema.toml:3: schema 2, but this mpopt reads schema 1; renew the file with 'mpopt budget write'
// RUN: sed '/^schema/d' kept.toml > no_schema.toml
// RUN: not mpopt budget check no_schema.toml net.mlir 2>&1 | FileCheck %s --check-prefix=KEY
// KEY: mpopt: error: no_schema.toml:{{[0-9]+}}: no budget of mpopt: it has no key 'schema'
// RUN: echo '<<<<<<< mine' >> kept.toml
// RUN: not mpopt budget check kept.toml net.mlir 2>&1 | FileCheck %s --check-prefix=MERGE
// MERGE: mpopt: error: kept.toml:{{[0-9]+}}: no line of a budget: <<<<<<< mine
// RUN: printf 'schema = 1\n[graph."a"]\ncasts = 1\ncasts = 2\n' > twice.toml
// RUN: not mpopt budget check twice.toml net.mlir 2>&1 | FileCheck %s --check-prefix=KEYS
// KEYS: mpopt: error: twice.toml:4: key 'casts' is there twice
// RUN: printf 'schema = 1\n[graph."a"]\n[graph."a"]\n' > tables.toml
// RUN: not mpopt budget check tables.toml net.mlir 2>&1 | FileCheck %s --check-prefix=TABLES
// TABLES: mpopt: error: tables.toml:3: table is there twice: [graph."a"]
// RUN: printf 'schema = 1\n[graph."a]\n' > open.toml
// RUN: not mpopt budget check open.toml net.mlir 2>&1 | FileCheck %s --check-prefix=OPEN
// OPEN: mpopt: error: open.toml:2: text without an end
// RUN: printf 'schema = 1\n[graph."a"]\ncasts = many\n' > many.toml
// RUN: not mpopt budget check many.toml net.mlir 2>&1 | FileCheck %s --check-prefix=MANY
// MANY: mpopt: error: many.toml:3: key 'casts' needs an integer or a text in quotes

// Another contract is no comparison; other graphs are a difference.
// RUN: mpopt budget write kept.toml net.mlir other=%s
// RUN: not mpopt budget check kept.toml net.mlir other=%s --numerics=strict 2>&1 | FileCheck %s --check-prefix=CONTRACT
// CONTRACT: mpopt: error: graph 'net.mlir': the budget is for numerics 'precise', not 'strict'
// RUN: sh -c 'mpopt budget check kept.toml net.mlir third=%s; test $? = 1' | FileCheck %s --check-prefix=STRANGE
// STRANGE: other: a graph of the budget that was not given
// STRANGE-NEXT: third: a graph that the budget lacks
// STRANGE-NEXT: over the budget

// A folder of bundles is all of them; the release of PyTorch is kept.
// RUN: not mpopt budget write dump.toml dump 2>&1 | FileCheck %s --check-prefix=EMPTY
// EMPTY: no bundle of mpopt: it has no file '00_import.mlir'
// RUN: cp %s dump/000_joint/00_import.mlir && cp %s dump/001_inference/00_import.mlir
// RUN: mpopt %s --mp-default -o dump/000_joint/after.mlir
// RUN: cp dump/000_joint/after.mlir dump/001_inference/after.mlir
// RUN: echo '{"pipeline": "mp-default", "torch": "2.14.0"}' > dump/000_joint/meta.json
// RUN: mpopt budget write dump.toml dump/
// RUN: FileCheck %s --check-prefix=DUMP < dump.toml
// DUMP: torch = "2.14.0"
// DUMP: [graph."000_joint"]
// DUMP: [graph."001_inference"]
// RUN: echo '{"pipeline": "mp-default", "torch": "2.15.0"}' > dump/000_joint/meta.json
// RUN: mpopt budget check dump.toml dump | FileCheck %s --check-prefix=WITHIN
// WITHIN: within the budget
// RUN: sed 's/^casts = 1/casts = 0/' dump.toml > tight.toml
// RUN: not mpopt budget check tight.toml dump | FileCheck %s --check-prefix=VERSION
// VERSION: note: torch 2.14.0 -> 2.15.0
// VERSION-NEXT: over the budget

func.func @f(%x: tensor<4xf32>) -> tensor<4xbf16> {
  %0 = mp.cast %x origin(user) : tensor<4xf32> to tensor<4xbf16>
  return %0 : tensor<4xbf16>
}
