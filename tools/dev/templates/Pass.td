def @File@ : Pass<"@arg@", "::mlir::func::FuncOp"> {
  let summary = "@summary@";
  let description = [{
    What it does; before and after; when it leaves the graph alone; what it does
    to roundings.

    Example: test/Passes/Examples/@stem@.mlir
  }];
  let dependentDialects = ["::mlir::mp::MPDialect"];
}

