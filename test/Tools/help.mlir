// The help fits a screen: 80 columns, fewer than 40 lines.
// RUN: mpopt --help | FileCheck %s
// RUN: mpopt --help | count 33
// RUN: mpopt explain --help | FileCheck %s --check-prefix=EXPLAIN

// CHECK-NOT: {{^.{81,}.*}}
// CHECK: usage: mpopt COMMAND INPUT... [options]
// CHECK: explain INPUT
// CHECK: diff A B
// CHECK: check BEFORE AFTER
// CHECK: budget write|check FILE GRAPH...
// CHECK: measure GRAPH
// CHECK: bisect
// CHECK: calibrate
// CHECK: --mp-default
// CHECK: exit codes: 0 ok, 1 difference (diff) or violation (check), 2 bad usage

// EXPLAIN: usage: mpopt explain INPUT [options]
// EXPLAIN: --format text|json|html
// EXPLAIN: --numerics strict|precise
// EXPLAIN: exit codes:
