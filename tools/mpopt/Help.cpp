//===- Help.cpp - subcommands and the help page ---------------------------===//

#include "tools/mpopt/Commands.h"
#include "tools/mpopt/PythonCommands.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir::mp;

namespace {
/// Options that several commands take.
struct Shared {
  OptionSpec model{
      "--model", "NAME", "program of a .pt2 file that holds several", {}};
  OptionSpec numerics{"--numerics",
                      "strict|precise|relaxed",
                      "contract of the passes (default precise)",
                      {"strict", "precise", "relaxed"}};
  OptionSpec epsilon{"--epsilon",
                     "E",
                     "relaxed: growth of the estimated error (default 0.05)",
                     {}};
  OptionSpec policy{"--policy", "FILE", "the user's policy (a TOML file)", {}};
  OptionSpec target{"--target",
                    "cpu|cuda",
                    "where the graph will run (default: as traced)",
                    {"cpu", "cuda"}};
};
} // namespace

static Command explainCommand() {
  const Shared shared;
  return {{"explain",
           "Report the conversions of a graph before and after the passes, by\n"
           "region, with the reason of each change and of each that is left.",
           {"INPUT"},
           {{"--format",
             "text|json|html",
             "what to print (default text)",
             {"text", "json", "html"}},
            {"-o", "FILE", "where to print it (default stdout)", {}},
            shared.numerics,
            shared.epsilon,
            shared.policy,
            shared.target,
            shared.model}},
          runExplain};
}

static Command diffCommand() {
  const Shared shared;
  return {
      {"diff",
       "Compare conversions, result types and bytes of two graphs by region.",
       {"A", "B"},
       {shared.model}},
      runDiff};
}

static Command checkCommand() {
  const Shared shared;
  return {{"check",
           "Prove that the rewrites recorded in AFTER keep their contracts, "
           "given\n"
           "the graph BEFORE them.",
           {"BEFORE", "AFTER"},
           {shared.model}},
          runCheck};
}

static Command budgetCommand() {
  const Shared shared;
  return {
      {"budget",
       "'write' keeps figures of graphs in FILE: conversions, their bytes, "
       "bytes\n"
       "saved for backward and pins, by region. 'check' fails with the lines "
       "that\n"
       "got worse. A GRAPH is any input, NAME=INPUT, or a folder of bundles.",
       {"write|check", "FILE", "GRAPH..."},
       {{"--tolerance",
         "SHARE",
         "check: growth that does not count, such as 0.02",
         {}},
        shared.numerics,
        shared.epsilon,
        shared.policy,
        shared.target,
        shared.model}},
      runBudget};
}

static Command measureCommand() {
  const Shared shared;
  return {
      {"measure",
       "Run the passes and tell how far they move the results, computed with\n"
       "the reference interpreter on inputs that are made from a seed or "
       "given\n"
       "in the graph (mp.value).",
       {"GRAPH"},
       {{"--limit", "N", "apply the first N rewrites only", {}},
        {"--pipeline",
         "PASSES",
         "what to run (default: mp-default, or\n"
         "                               that of the "
         "bundle)",
         {}},
        {"--seed", "N", "of the first inputs (default 0)", {}},
        {"--trials", "N", "inputs, of seeds in a row (default 3)", {}},
        {"--dynamic-size", "N", "what a dynamic size is (default 3)", {}},
        {"--format",
         "text|json",
         "what to print (default text)",
         {"text", "json"}},
        shared.numerics,
        shared.epsilon,
        shared.policy,
        shared.target,
        shared.model}},
      runMeasure};
}

static Command policyCommand() {
  const Shared shared;
  return {
      {"policy",
       "init INPUT: write a commented policy with the modules, groups and "
       "unknown\noperators of a graph. check POLICY [INPUT]: read a policy; "
       "with a graph, show\nwhat each rule matches and decides (1 if one "
       "matches nothing).",
       {"init|check", "INPUT|POLICY", "[INPUT]"},
       {{"-o", "FILE", "where init writes (default stdout)", {}},
        shared.model}},
      runPolicy};
}

llvm::ArrayRef<Command> mlir::mp::commands() {
  static const std::vector<Command> list = {explainCommand(), diffCommand(),
                                            checkCommand(),   budgetCommand(),
                                            measureCommand(), policyCommand()};
  return list;
}

void mlir::mp::printHelp(llvm::raw_ostream &os) {
  os << "mpopt: a precision compiler for PyTorch graphs\n"
        "\n"
        "usage: mpopt COMMAND INPUT... [options]\n"
        "       mpopt [passes] [options] INPUT        as mlir-opt\n"
        "\n"
        "commands (mpopt COMMAND --help has their options):\n"
        "  explain INPUT          conversions before and after, and why\n"
        "  diff A B               where two graphs differ in precision\n"
        "  check BEFORE AFTER     prove the recorded rewrites\n"
        "  budget write|check FILE GRAPH...\n"
        "                         keep figures, fail when they get worse\n"
        "  measure GRAPH          how far the passes move the results\n"
        "  policy init|check ...  start a precision policy, see what it "
        "selects\n";
  for (const PythonCommand &command : pythonCommands())
    os << llvm::formatv("  {0,-22} {1}\n", command.name, command.summary);
  os << "\n"
        "inputs: .mlir, .mlirbc, .pt2 (torch.export.save), the JSON of an\n"
        "  exported program, or a bundle (folder written with MPOPT_DUMP)\n"
        "\n"
        "passes and pipelines:\n"
        "  --mp-default[=numerics=strict|precise]   the pipeline of the "
        "backend\n"
        "  --mp-normalize --mp-raise --mp-eliminate-casts --mp-lower\n"
        "  --canonicalize --cse ...                 --list-passes shows all\n"
        "\n"
        "common options:\n"
        "  -o FILE                write there instead of to stdout\n"
        "  --model NAME           program of a .pt2 file that holds several\n"
        "  --emit-bytecode        write .mlirbc\n"
        "  --mlir-print-debuginfo print module paths and source lines\n"
        "  --help-hidden          every option of MLIR\n"
        "\n"
        "exit codes: 0 ok, 1 difference (diff) or violation (check), 2 bad "
        "usage,\n"
        "  bad input or a failed pass\n";
}

int mlir::mp::reportError(const llvm::Twine &what) {
  llvm::errs() << "mpopt: error: " << what << '\n';
  return BadInput;
}

int mlir::mp::reportError(llvm::Error error) {
  return reportError(llvm::toString(std::move(error)));
}
