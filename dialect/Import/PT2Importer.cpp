//===- PT2Importer.cpp - exported programs as modules ---------------------===//

#include "dialect/Import/PT2Importer.h"
#include "dialect/Graph/Graph.h"
#include "dialect/IR/MPOps.h"
#include "dialect/Import/PT2Nodes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/Errc.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::pt2;
using llvm::Error;
using llvm::Expected;
namespace json = llvm::json;

namespace {
/// The values of one graph; the graph of a region has its own.
struct Scope {
  const json::Object &graph;
  ValueMap values;
};

/// Builds the one function of a program.
class ProgramImporter {
public:
  ProgramImporter(const json::Object &program, MLIRContext *context)
      : program(program), builder(context), unknown(UnknownLoc::get(context)) {}

  Expected<OwningOpRef<ModuleOp>> run(StringRef name);

private:
  Error importInputs(Scope &scope, const json::Object &signature);
  Error importInput(Scope &scope, const json::Value &input,
                    const json::Value &spec);
  Error importOutputs(Scope &scope, const json::Object &signature);
  Error importNodes(Scope &scope);
  Error importNode(Scope &scope, const json::Object &node);
  Error inlineRegion(Scope &scope, const json::Object &node, StringRef callee);
  Error enterRegion(Scope &outer, const json::Object &node,
                    const json::Object &graph, const json::Array &inputs,
                    size_t firstOperand);
  Error createOp(Scope &scope, const json::Object &node, StringRef callee);
  Expected<Type> typeOf(const Scope &scope, StringRef name, StringRef kind);
  Expected<SmallVector<std::pair<StringRef, Type>>>
  resultsOf(const Scope &scope, const json::Object &node);
  Error define(Scope &scope, StringRef name, Value value);
  void setTarget();

  const json::Object &program;
  OpBuilder builder;
  Location unknown;
  func::FuncOp func;
  SmallVector<DictionaryAttr> inputAttrs;
  SmallVector<StringAttr> autocast; ///< open regions, innermost last
  int32_t nodes = 0;                ///< created so far
};
} // namespace

/// The error of node `node`, named so that it can be found in the program.
static Error nodeError(const json::Object &node, const Twine &what) {
  StringRef name = node.getString("name").value_or("?");
  return llvm::createStringError(llvm::errc::invalid_argument,
                                 "node '" + name + "': " + what);
}

Error ProgramImporter::define(Scope &scope, StringRef name, Value value) {
  if (name.empty())
    return Error::success();
  if (!scope.values.try_emplace(name, value).second)
    return malformed("value '" + name + "' is defined twice");
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

Expected<Type> ProgramImporter::typeOf(const Scope &scope, StringRef name,
                                       StringRef kind) {
  if (kind == "as_sym_int")
    return builder.getIndexType();
  if (kind == "as_sym_float")
    return builder.getF64Type();
  if (kind == "as_sym_bool")
    return builder.getI1Type();
  if (kind == "as_custom_obj" || kind == "as_token")
    return builder.getNoneType();
  Expected<const json::Object *> table =
      getObject(scope.graph, "tensor_values");
  if (!table)
    return table.takeError();
  const json::Object *meta = (*table)->getObject(name);
  if (!meta)
    return malformed("tensor '" + name + "' has no entry in tensor_values");
  return tensorType(*meta, builder.getContext());
}

Expected<SmallVector<std::pair<StringRef, Type>>>
ProgramImporter::resultsOf(const Scope &scope, const json::Object &node) {
  Expected<const json::Array *> outputs = getArray(node, "outputs");
  if (!outputs)
    return outputs.takeError();
  SmallVector<std::pair<StringRef, Type>> results;
  for (const json::Value &output : **outputs) {
    Expected<Union> kind = asUnion(output, "an output");
    if (!kind)
      return kind.takeError();
    Expected<SmallVector<StringRef>> names = valueNames(output);
    if (!names)
      return names.takeError();
    for (StringRef name : *names) {
      if (name.empty())
        continue; // none, or a constant
      Expected<Type> type = typeOf(scope, name, kind->key);
      if (!type)
        return type.takeError();
      results.emplace_back(name, *type);
    }
  }
  return results;
}

//===----------------------------------------------------------------------===//
// Signature
//===----------------------------------------------------------------------===//

/// Role and framework name of the input that `spec` describes.
static std::pair<StringRef, StringRef> roleOf(Union spec, StringRef valueName,
                                              Type type) {
  const json::Object *object = spec.value->getAsObject();
  auto field = [&](StringRef key) {
    return object ? object->getString(key).value_or(valueName) : valueName;
  };
  if (spec.key == "parameter")
    return {"parameter", field("parameter_name")};
  if (spec.key == "buffer")
    return {"buffer", field("buffer_name")};
  if (spec.key == "tensor_constant")
    return {"buffer", field("tensor_constant_name")};
  return {isa<RankedTensorType>(type) ? "input" : "symint", valueName};
}

Error ProgramImporter::importInput(Scope &scope, const json::Value &input,
                                   const json::Value &spec) {
  Expected<Union> kind = asUnion(input, "a graph input");
  if (!kind)
    return kind.takeError();
  Expected<Union> specKind = asUnion(spec, "an input specification");
  if (!specKind)
    return specKind.takeError();
  StringRef name = valueName(*kind);
  if (name.empty())
    return Error::success(); // a constant: its readers hold its value
  Expected<Type> type = typeOf(scope, name, kind->key);
  if (!type)
    return type.takeError();
  auto [role, framework] = ::roleOf(*specKind, name, *type);
  inputAttrs.push_back(builder.getDictionaryAttr(
      {builder.getNamedAttr(MPDialect::kRoleAttrName,
                            builder.getStringAttr(role)),
       builder.getNamedAttr(MPDialect::kNameAttrName,
                            builder.getStringAttr(framework))}));
  // The function's type follows when all inputs and outputs are known.
  return define(scope, name, func.getBody().addArgument(*type, unknown));
}

Error ProgramImporter::importInputs(Scope &scope,
                                    const json::Object &signature) {
  Expected<const json::Array *> inputs = getArray(scope.graph, "inputs");
  if (!inputs)
    return inputs.takeError();
  Expected<const json::Array *> specs = getArray(signature, "input_specs");
  if (!specs)
    return specs.takeError();
  if ((*inputs)->size() != (*specs)->size())
    return malformed("the graph has " + Twine((*inputs)->size()) +
                     " inputs, its signature " + Twine((*specs)->size()));
  for (auto [input, spec] : llvm::zip(**inputs, **specs))
    if (Error error = importInput(scope, input, spec))
      return error;
  return Error::success();
}

Error ProgramImporter::importOutputs(Scope &scope,
                                     const json::Object &signature) {
  Expected<const json::Array *> outputs = getArray(scope.graph, "outputs");
  if (!outputs)
    return outputs.takeError();
  Expected<const json::Array *> specs = getArray(signature, "output_specs");
  if (!specs)
    return specs.takeError();
  if ((*outputs)->size() != (*specs)->size())
    return malformed("the graph has " + Twine((*outputs)->size()) +
                     " outputs, its signature " + Twine((*specs)->size()));
  SmallVector<Value> returned;
  SmallVector<DictionaryAttr> attrs;
  for (auto [output, spec] : llvm::zip(**outputs, **specs)) {
    Expected<Union> specKind = asUnion(spec, "an output specification");
    if (!specKind)
      return specKind.takeError();
    Expected<SmallVector<StringRef>> names = valueNames(output);
    if (!names)
      return names.takeError();
    for (StringRef name : *names) {
      if (name.empty())
        continue; // a constant
      Value value = scope.values.lookup(name);
      if (!value)
        return malformed("output '" + name + "' is not defined");
      returned.push_back(value);
      attrs.push_back(builder.getDictionaryAttr(
          {builder.getNamedAttr(MPDialect::kNameAttrName,
                                builder.getStringAttr(name)),
           builder.getNamedAttr(kOutputKindAttrName,
                                builder.getStringAttr(specKind->key))}));
    }
  }
  func::ReturnOp::create(builder, unknown, returned);
  func.setType(builder.getFunctionType(func.getBody().getArgumentTypes(),
                                       TypeRange(ValueRange(returned))));
  func.setAllArgAttrs(inputAttrs);
  func.setAllResultAttrs(attrs);
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

Error ProgramImporter::createOp(Scope &scope, const json::Object &node,
                                StringRef callee) {
  Expected<const json::Array *> inputs = getArray(node, "inputs");
  if (!inputs)
    return inputs.takeError();
  if (isInPlace(callee, **inputs))
    return nodeError(node, callee + " changes a tensor in place; make the "
                                    "program functional before saving it: ep "
                                    "= ep.run_decompositions({})");
  NodeArguments arguments(scope.values, builder);
  for (auto [i, input] : llvm::enumerate(**inputs)) {
    const json::Object *object = input.getAsObject();
    const json::Value *arg = object ? object->get("arg") : nullptr;
    if (!arg)
      return nodeError(node, "input " + Twine(i) + " has no argument");
    // A higher-order op's positional arguments have no names.
    std::string name = object->getString("name").value_or("").str();
    if (name.empty())
      name = "arg" + std::to_string(i);
    if (Error error = arguments.add(name, *arg))
      return nodeError(node, llvm::toString(std::move(error)));
  }
  auto results = resultsOf(scope, node);
  if (!results)
    return nodeError(node, llvm::toString(results.takeError()));

  bool isOpaque = callee.starts_with("higher_order.") || hasEffects(callee);
  DictionaryAttr args = arguments.args();
  auto op = AtenOp::create(
      builder, nodeLocation(nodes++, locationOf(node, builder.getContext())),
      llvm::to_vector(llvm::make_second_range(*results)),
      builder.getStringAttr(callee), arguments.operands(),
      args.empty() ? DictionaryAttr() : args,
      isOpaque ? builder.getUnitAttr() : UnitAttr());
  if (!autocast.empty())
    op->setDiscardableAttr(kAutocastAttrName, autocast.back());
  if (isAutocastConversion(callee, node))
    op->setDiscardableAttr(
        "mp.origin",
        CastOriginAttr::get(builder.getContext(), CastOrigin::autocast));
  for (auto [result, value] : llvm::zip(*results, op->getResults()))
    if (Error error = define(scope, result.first, value))
      return error;
  return Error::success();
}

Error ProgramImporter::importNode(Scope &scope, const json::Object &node) {
  Expected<StringRef> target = getString(node, "target");
  if (!target)
    return target.takeError();
  StringRef callee = calleeOf(*target);
  if (callee == "higher_order.wrap_with_autocast" ||
      callee == "higher_order.wrap_with_set_grad_enabled")
    return inlineRegion(scope, node, callee);
  return createOp(scope, node, callee);
}

Error ProgramImporter::importNodes(Scope &scope) {
  Expected<const json::Array *> list = getArray(scope.graph, "nodes");
  if (!list)
    return list.takeError();
  for (const json::Value &value : **list) {
    Expected<const json::Object *> node = asObject(value, "a node");
    if (!node)
      return node.takeError();
    if (Error error = importNode(scope, **node))
      return error;
  }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

/// The dtype that wrap_with_autocast(device, dtype, enabled, ...) computes in,
/// or "off". Without a dtype, each device has its default.
static Expected<std::string> autocastDtype(ArrayRef<const json::Object *> args,
                                           MLIRContext *context) {
  if (args.size() < 3)
    return malformed("wrap_with_autocast needs a device, a dtype and a flag");
  if (!args[2]->getBoolean("as_bool").value_or(true))
    return std::string("off");
  std::optional<int64_t> code = args[1]->getInteger("as_scalar_type");
  if (!code)
    return std::string(args[0]->getString("as_string") == "cuda" ? "f16"
                                                                 : "bf16");
  Expected<Type> type = scalarType(*code, context);
  if (!type)
    return type.takeError();
  std::string text;
  llvm::raw_string_ostream(text) << *type;
  return text;
}

Error ProgramImporter::inlineRegion(Scope &scope, const json::Object &node,
                                    StringRef callee) {
  Expected<const json::Array *> inputs = getArray(node, "inputs");
  if (!inputs)
    return inputs.takeError();
  SmallVector<const json::Object *> args;
  const json::Object *graph = nullptr;
  for (const json::Value &input : **inputs) {
    const json::Object *object = input.getAsObject();
    const json::Object *arg = object ? object->getObject("arg") : nullptr;
    if (!arg)
      return nodeError(node,
                       "input " + Twine(args.size()) + " has no argument");
    args.push_back(arg);
    if (const json::Object *region = arg->getObject("as_graph")) {
      graph = region->getObject("graph");
      break;
    }
  }
  if (!graph)
    return nodeError(node, callee + " has no graph");
  if (callee == "higher_order.wrap_with_autocast") {
    Expected<std::string> dtype = autocastDtype(args, builder.getContext());
    if (!dtype)
      return nodeError(node, llvm::toString(dtype.takeError()));
    autocast.push_back(builder.getStringAttr(*dtype));
  }
  Error error = enterRegion(scope, node, *graph, **inputs, args.size());
  if (callee == "higher_order.wrap_with_autocast")
    autocast.pop_back();
  return error;
}

/// The value names of a list of arguments; "" for what is no value.
static Expected<SmallVector<StringRef>> flatten(const json::Array &list,
                                                size_t first = 0) {
  SmallVector<StringRef> names;
  for (const json::Value &value : llvm::drop_begin(list, first)) {
    const json::Object *object = value.getAsObject();
    const json::Value *arg = object ? object->get("arg") : nullptr;
    Expected<SmallVector<StringRef>> some = valueNames(arg ? *arg : value);
    if (!some)
      return some.takeError();
    names.append(*some);
  }
  return names;
}

/// Defines in `to`, under `toNames`, what `from` calls `fromNames`.
static Error bindValues(const ValueMap &from, ArrayRef<StringRef> fromNames,
                        ValueMap &to, ArrayRef<StringRef> toNames) {
  if (fromNames.size() != toNames.size())
    return malformed("a region takes or returns " + Twine(toNames.size()) +
                     " values where " + Twine(fromNames.size()) + " are given");
  for (auto [source, name] : llvm::zip(fromNames, toNames)) {
    if (source.empty() || name.empty())
      continue;
    Value value = from.lookup(source);
    if (!value)
      return malformed("value '" + source + "' is used before it is defined");
    if (!to.try_emplace(name, value).second)
      return malformed("value '" + name + "' is defined twice");
  }
  return Error::success();
}

Error ProgramImporter::enterRegion(Scope &outer, const json::Object &node,
                                   const json::Object &graph,
                                   const json::Array &inputs,
                                   size_t firstOperand) {
  Scope inner{graph, {}};
  auto bind = [&](const Scope &from, Expected<SmallVector<StringRef>> given,
                  Scope &to, Expected<const json::Array *> taken) -> Error {
    if (!given) {
      llvm::consumeError(taken ? Error::success() : taken.takeError());
      return given.takeError();
    }
    if (!taken)
      return taken.takeError();
    Expected<SmallVector<StringRef>> names = flatten(**taken);
    if (!names)
      return names.takeError();
    return bindValues(from.values, *given, to.values, *names);
  };
  if (Error error = bind(outer, flatten(inputs, firstOperand), inner,
                         getArray(graph, "inputs")))
    return nodeError(node, llvm::toString(std::move(error)));
  if (Error error = importNodes(inner))
    return error;
  Expected<const json::Array *> returned = getArray(graph, "outputs");
  if (!returned)
    return returned.takeError();
  if (Error error =
          bind(inner, flatten(**returned), outer, getArray(node, "outputs")))
    return nodeError(node, llvm::toString(std::move(error)));
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

/// The program was traced for CUDA if any of its tensors lives there.
static bool isOnCuda(const json::Object &graph) {
  const json::Object *tensors = graph.getObject("tensor_values");
  return tensors && llvm::any_of(*tensors, [](const auto &entry) {
           const json::Object *meta = entry.second.getAsObject();
           const json::Object *device =
               meta ? meta->getObject("device") : nullptr;
           return device && device->getString("type") == "cuda";
         });
}

Expected<OwningOpRef<ModuleOp>> ProgramImporter::run(StringRef name) {
  Expected<const json::Object *> graphModule =
      getObject(program, "graph_module");
  if (!graphModule)
    return graphModule.takeError();
  Expected<const json::Object *> graph = getObject(**graphModule, "graph");
  if (!graph)
    return graph.takeError();
  Expected<const json::Object *> signature =
      getObject(**graphModule, "signature");
  if (!signature)
    return signature.takeError();

  OwningOpRef<ModuleOp> module = ModuleOp::create(unknown);
  builder.setInsertionPointToEnd(module->getBody());
  func = func::FuncOp::create(builder, unknown, name,
                              builder.getFunctionType({}, {}));
  func->setDiscardableAttr(
      MPDialect::kTargetAttrName,
      builder.getStringAttr(isOnCuda(**graph) ? "cuda" : "cpu"));
  builder.setInsertionPointToEnd(func.addEntryBlock());
  Scope scope{**graph, {}};
  if (Error error = importInputs(scope, **signature))
    return error;
  if (Error error = importNodes(scope))
    return error;
  if (Error error = importOutputs(scope, **signature))
    return error;
  return module;
}

Expected<OwningOpRef<ModuleOp>>
mlir::mp::importProgram(StringRef text, StringRef name, MLIRContext *context) {
  context->loadDialect<MPDialect, func::FuncDialect>();
  Expected<json::Value> json = parseJSON(text);
  if (!json)
    return json.takeError();
  Expected<const json::Object *> program = asObject(*json, "the program");
  if (!program)
    return program.takeError();
  std::string warning;
  if (Error error = checkVersion(**program, warning))
    return error;
  if (!warning.empty())
    emitWarning(UnknownLoc::get(context)) << warning;
  return ProgramImporter(**program, context).run(name);
}
