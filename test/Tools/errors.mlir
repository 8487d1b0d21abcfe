// Every mistake ends in one line that says what to do, and in exit code 2.
// RUN: not mpopt explian %s 2>&1 | FileCheck %s --check-prefix=COMMAND
// COMMAND: mpopt: error: no command and no file 'explian'; did you mean 'explain'?
// RUN: not mpopt calibrat 2>&1 | FileCheck %s --check-prefix=PYTHON
// PYTHON: mpopt: error: no command and no file 'calibrat'; did you mean 'calibrate'?
// RUN: not mpopt explain --fromat=json %s 2>&1 | FileCheck %s --check-prefix=OPTION
// OPTION: mpopt: error: 'mpopt explain' has no option '--fromat'; did you mean '--format'?
// RUN: not mpopt explain --format=jsn %s 2>&1 | FileCheck %s --check-prefix=VALUE
// VALUE: mpopt: error: option '--format' takes text, json, html, not 'jsn'; did you mean 'json'?
// RUN: not mpopt explain --epsilon=0.1 %s 2>&1 | FileCheck %s --check-prefix=EPSILON
// EPSILON: mpopt: error: --epsilon needs --numerics=relaxed
// RUN: not mpopt explain --numerics=relaxed --epsilon=much %s 2>&1 | FileCheck %s --check-prefix=NUMBER
// RUN: not mpopt explain --numerics=relaxed --epsilon=-1 %s 2>&1 | FileCheck %s --check-prefix=NUMBER
// NUMBER: mpopt: error: --epsilon takes a number from 0 on, not '{{much|-1}}'
// RUN: not mpopt explain %s %s 2>&1 | FileCheck %s --check-prefix=COUNT
// COUNT: mpopt: error: 'mpopt explain' needs INPUT, got 2 inputs
// RUN: not mpopt --mp-eliminate-cast %s 2>&1 | FileCheck %s --check-prefix=PASS
// PASS: Unknown command line argument '--mp-eliminate-cast'
// PASS: Did you mean '--mp-eliminate-casts'?
// RUN: not mpopt --mp-default=disable=mp-rase %s 2>&1 | FileCheck %s --check-prefix=DISABLE
// DISABLE: mp-default has no pass 'mp-rase' to disable; did you mean 'mp-raise'?
// RUN: sh -c 'mpopt explain nothing.mlir; test $? = 2' 2>&1 | FileCheck %s --check-prefix=FILE
// FILE: mpopt: error: nothing.mlir: cannot read: No such file or directory
// RUN: mkdir -p %t.folder
// RUN: not mpopt explain %t.folder 2>&1 | FileCheck %s --check-prefix=BUNDLE
// BUNDLE: no bundle of mpopt: it has no file '00_import.mlir'; write one with MPOPT_DUMP=<folder>
// RUN: mkdir -p %t.bundle
// RUN: echo 'module {}' > %t.bundle/00_import.mlir
// RUN: echo 'module {}' > %t.bundle/after.mlir
// RUN: echo '{"pipeline": "mp-defalt"}' > %t.bundle/meta.json
// RUN: not mpopt explain %t.bundle 2>&1 | FileCheck %s --check-prefix=PIPELINE
// PIPELINE: mpopt: error: {{.*}}.bundle: pipeline 'mp-defalt': {{.*}}mp-defalt
// RUN: echo '{"pipeline": ' > %t.bundle/meta.json
// RUN: not mpopt explain %t.bundle 2>&1 | FileCheck %s --check-prefix=META
// META: mpopt: error: {{.*}}meta.json: no JSON: {{.*}}
// RUN: echo '{"torch": "2.15.0"}' > %t.bundle/meta.json
// RUN: not mpopt explain %t.bundle 2>&1 | FileCheck %s --check-prefix=KEY
// KEY: mpopt: error: {{.*}}meta.json: has no text under the key 'pipeline'
// RUN: echo 'func.func @f() { mp.nothing }' > %t.mlir
// RUN: not mpopt explain %t.mlir 2>&1 | FileCheck %s --check-prefix=SYNTAX
// SYNTAX: mpopt: error: {{.*}}.mlir:1:18: {{.*}}mp.nothing
// RUN: echo 'PK' > %t.pt2
// RUN: not mpopt explain %t.pt2 2>&1 | FileCheck %s --check-prefix=ZIP
// RUN: not mpopt %t.pt2 2>&1 | FileCheck %s --check-prefix=ZIP
// ZIP: mpopt: error: {{.*}}.pt2: not a zip archive
