# Configuration of the lit tests; lit.site.cfg.py of the build loads it.
# ruff: noqa: F821  (lit defines config)
import os

import lit.formats

config.name = "mpopt"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.excludes = ["unit", "python", "Inputs", "lib"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = config.exec_root
config.environment["PATH"] = os.pathsep.join(
    [config.mpopt_bin, config.llvm_bin, config.environment["PATH"]]
)
config.substitutions.append(("%mpopt_lib", config.mpopt_lib))
# FileCheck variables end with the function (CHECK-LABEL) that bound them.
config.environment["FILECHECK_OPTS"] = "--enable-var-scope --dump-input=fail"
