//===- PT2Metadata.cpp - what is known of a node besides its arguments ----===//

#include "dialect/IR/OpTable.h"
#include "dialect/Import/PT2Nodes.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::pt2;
namespace json = llvm::json;

StringRef pt2::calleeOf(StringRef target) {
  target.consume_front("torch.ops.");
  return target;
}

//===----------------------------------------------------------------------===//
// Effects
//===----------------------------------------------------------------------===//

/// The argument called `name`, or null.
static const json::Object *argumentOf(const json::Array &inputs,
                                      StringRef name) {
  for (const json::Value &input : inputs) {
    const json::Object *object = input.getAsObject();
    if (object && object->getString("name") == name)
      return object->getObject("arg");
  }
  return nullptr;
}

/// True for a norm that trains (`flag`) and is given statistics to update.
static bool updatesStatistics(const json::Array &inputs, StringRef flag) {
  const json::Object *trains = argumentOf(inputs, flag);
  const json::Object *mean = argumentOf(inputs, "running_mean");
  return trains && trains->getBoolean("as_bool").value_or(false) && mean &&
         !mean->get("as_none");
}

bool pt2::isInPlace(StringRef callee, const json::Array &inputs) {
  if (callee.starts_with("_operator.") || callee.starts_with("math."))
    return false; // numbers; and_ and or_ are no in-place forms
  auto [op, overload] = callee.rsplit('.');
  StringRef name = op.rsplit('.').second;
  if (name == "batch_norm" || name == "native_batch_norm")
    return updatesStatistics(inputs, "training");
  if (name == "instance_norm")
    return updatesStatistics(inputs, "use_input_stats");
  if (overload == "out" || overload.ends_with("_out"))
    return true;
  if (name.ends_with("__")) // __and__ makes a tensor, __iand__ changes one
    return name.starts_with("__i") && name != "__invert__" &&
           name != "__index__" && name != "__int__";
  return name.ends_with("_");
}

/// The spellings of a conversion; they have no row, for they become mp.cast.
static bool isConversion(StringRef op) {
  return llvm::StringSwitch<bool>(op)
      .Cases({"aten.to", "aten._to_copy", "aten.type_as",
              "prims.convert_element_type"},
             true)
      .Default(false);
}

bool pt2::hasEffects(StringRef callee) {
  if (callee.starts_with("torch.sym_") || callee.starts_with("math."))
    return false; // arithmetic on sizes
  if (isConversion(stripOverload(callee)))
    return false;
  const OpRow *row = lookupOpRow(callee);
  return !row || row->kind == OpKind::Effect || row->kind == OpKind::Random;
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

static StringRef metadataOf(const json::Object &node, StringRef key) {
  const json::Object *metadata = node.getObject("metadata");
  return metadata ? metadata->getString(key).value_or("") : StringRef();
}

/// "layers.0.norm" of "key,path,type;key,path,type": the innermost module's.
static StringRef modulePath(StringRef stack) {
  StringRef innermost = stack.contains(';') ? stack.rsplit(';').second : stack;
  StringRef path = innermost.split(',').second.split(',').first;
  if (path == "_empty_nn_module_stack_from_metadata_hook")
    return {};
  return path.split('@').first; // "fc@1" is the second call of fc
}

namespace {
struct Frame {
  StringRef file;
  unsigned line = 0;
};
} // namespace

/// The innermost frame of `trace` outside of PyTorch, else the innermost one.
/// Frames of generated code ("<eval_with_key>.1") name no file.
static Frame frameOf(StringRef trace) {
  Frame users, any;
  SmallVector<StringRef> lines;
  trace.split(lines, '\n');
  for (StringRef line : lines) {
    line = line.ltrim();
    if (!line.consume_front("File \""))
      continue;
    auto [file, rest] = line.split('"');
    Frame frame{file, 0};
    if (file.starts_with("<") || !rest.consume_front(", line ") ||
        rest.consumeInteger(10, frame.line))
      continue;
    any = frame;
    if (!file.contains("/torch/") && !file.starts_with("torch/"))
      users = frame;
  }
  return users.file.empty() ? any : users;
}

Location pt2::locationOf(const json::Object &node, MLIRContext *context) {
  Location loc = UnknownLoc::get(context);
  Frame frame = frameOf(metadataOf(node, "stack_trace"));
  if (!frame.file.empty())
    loc = FileLineColLoc::get(context, frame.file, frame.line, 0);
  StringRef module = modulePath(metadataOf(node, "nn_module_stack"));
  if (!module.empty())
    loc = NameLoc::get(StringAttr::get(context, module), loc);
  return loc;
}

//===----------------------------------------------------------------------===//
// Origin of conversions
//===----------------------------------------------------------------------===//

bool pt2::isAutocastConversion(StringRef callee, const json::Object &node) {
  // run_decompositions leaves no region, but the trace names it, and quotes
  // the line of the region's graph that this node came from.
  if (!isConversion(stripOverload(callee)) ||
      !metadataOf(node, "torch_fn").starts_with("wrap_with_autocast"))
    return false;
  StringRef trace = metadataOf(node, "stack_trace");
  size_t at = trace.rfind("torch.ops.");
  if (at == StringRef::npos)
    return false;
  StringRef quoted =
      calleeOf(trace.substr(at)).take_until([](char c) { return c == '('; });
  return !isConversion(stripOverload(quoted));
}
