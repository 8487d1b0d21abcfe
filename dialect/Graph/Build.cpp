//===- Build.cpp - from columns to a module -------------------------------===//

#include "dialect/Graph/Graph.h"
#include "dialect/IR/MPOps.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::mp;

Location mlir::mp::nodeLocation(int32_t node, Location where) {
  Builder builder(where.getContext());
  return FusedLoc::get(where.getContext(), {where},
                       builder.getI64IntegerAttr(node));
}

int32_t mlir::mp::nodeOf(Location loc) {
  auto fused = dyn_cast<FusedLoc>(loc);
  if (!fused)
    return -1;
  if (auto number = dyn_cast_if_present<IntegerAttr>(fused.getMetadata()))
    return number.getInt();
  return -1;
}

// A derived location holds its stem in an array, so that it is no node itself.
Location mlir::mp::derivedLocation(Location loc) {
  Builder builder(loc.getContext());
  auto fused = dyn_cast<FusedLoc>(loc);
  int32_t stem = stemOf(loc);
  Attribute metadata = builder.getI64ArrayAttr({stem});
  if (fused)
    return FusedLoc::get(loc.getContext(), fused.getLocations(), metadata);
  return FusedLoc::get(loc.getContext(), {loc}, metadata);
}

int32_t mlir::mp::stemOf(Location loc) {
  if (auto fused = dyn_cast<FusedLoc>(loc))
    if (auto stem = dyn_cast_if_present<ArrayAttr>(fused.getMetadata()))
      if (stem.size() == 1)
        if (auto number = dyn_cast<IntegerAttr>(stem[0]))
          return number.getInt();
  return nodeOf(loc);
}

llvm::StringRef mlir::mp::modulePathOf(Location loc) {
  if (auto name = loc->findInstanceOf<NameLoc>())
    return name.getName();
  return {};
}

namespace {
/// Parses the tables once, then creates one operation for each node.
class ModuleBuilder {
public:
  ModuleBuilder(const Graph &graph, MLIRContext *context)
      : graph(graph), builder(context), unknown(builder.getUnknownLoc()),
        argsName(builder.getStringAttr("args")) {}

  OwningOpRef<ModuleOp> build();

private:
  LogicalResult parseTables();
  FailureOr<DictionaryAttr> parseDictionary(StringRef text);
  Location parseSource(const Graph::Source &source);
  LogicalResult createFunction(ModuleOp module);
  LogicalResult createNode(int32_t node);
  void setAttributes(OperationState &state, StringAttr callee,
                     DictionaryAttr dict, bool hasEffects);
  LogicalResult createReturn();
  LogicalResult annotateSignature();

  const Graph &graph;
  OpBuilder builder;
  Location unknown;
  StringAttr argsName;
  SmallVector<Type> types;
  SmallVector<DictionaryAttr> attrs;
  SmallVector<std::pair<OperationName, StringAttr>> targets;
  SmallVector<Location> sources;
  std::vector<Value> values;
  func::FuncOp func;
};
} // namespace

FailureOr<DictionaryAttr> ModuleBuilder::parseDictionary(StringRef text) {
  if (text.empty())
    return builder.getDictionaryAttr({});
  auto dict = dyn_cast_if_present<DictionaryAttr>(
      parseAttribute(text, builder.getContext()));
  if (!dict)
    return emitError(unknown, "not a dictionary attribute: ") << text;
  return dict;
}

Location ModuleBuilder::parseSource(const Graph::Source &source) {
  Location loc = unknown;
  if (!source.file.empty())
    loc =
        FileLineColLoc::get(builder.getContext(), source.file, source.line, 0);
  if (!source.module.empty())
    loc = NameLoc::get(builder.getStringAttr(source.module), loc);
  return loc;
}

LogicalResult ModuleBuilder::parseTables() {
  for (const std::string &text : graph.types) {
    Type type = parseType(text, builder.getContext());
    if (!type)
      return emitError(unknown, "not a type: ") << text;
    types.push_back(type);
  }
  for (const std::string &text : graph.attrs) {
    FailureOr<DictionaryAttr> dict = parseDictionary(text);
    if (failed(dict))
      return failure();
    attrs.push_back(*dict);
  }
  OperationName aten(AtenOp::getOperationName(), builder.getContext());
  for (const std::string &text : graph.targets) {
    if (StringRef(text).starts_with("mp."))
      targets.emplace_back(OperationName(text, builder.getContext()),
                           StringAttr());
    else
      targets.emplace_back(aten, builder.getStringAttr(text));
  }
  for (const Graph::Source &source : graph.sources)
    sources.push_back(parseSource(source));
  return success();
}

LogicalResult ModuleBuilder::createFunction(ModuleOp module) {
  builder.setInsertionPointToEnd(module.getBody());
  SmallVector<Type> inputs;
  for (int32_t type : graph.inputTypes)
    inputs.push_back(types[type]);
  func = func::FuncOp::create(builder, unknown, graph.name,
                              builder.getFunctionType(inputs, {}));
  FailureOr<DictionaryAttr> dict = parseDictionary(graph.attributes);
  if (failed(dict))
    return failure();
  for (NamedAttribute attr : *dict)
    func->setDiscardableAttr(attr.getName(), attr.getValue());
  Block *block = func.addEntryBlock();
  builder.setInsertionPointToEnd(block);
  values.assign(block->args_begin(), block->args_end());
  values.reserve(graph.inputTypes.size() + graph.resultTypes.size());
  return success();
}

/// Properties are set directly: by name it would take as long as all the rest.
void ModuleBuilder::setAttributes(OperationState &state, StringAttr callee,
                                  DictionaryAttr dict, bool hasEffects) {
  if (!callee) {
    state.addAttributes(dict.getValue());
    return;
  }
  auto &properties = state.getOrAddProperties<AtenOp::Properties>();
  properties.callee = callee;
  if (hasEffects)
    properties.effects = builder.getUnitAttr();
  for (NamedAttribute attr : dict) {
    auto args = dyn_cast<DictionaryAttr>(attr.getValue());
    if (args && attr.getName() == argsName)
      properties.args = args;
    else
      state.attributes.append(attr);
  }
}

LogicalResult ModuleBuilder::createNode(int32_t node) {
  auto [name, callee] = targets[graph.target[node]];
  int32_t source = graph.source[node];
  Location where = source < 0 ? unknown : sources[source];
  OperationState state(nodeLocation(node, where), name);

  for (int32_t i = node ? graph.operandEnd[node - 1] : 0;
       i != graph.operandEnd[node]; ++i) {
    int32_t value = graph.operands[i];
    if (value < 0 || size_t(value) >= values.size())
      return emitError(state.location, "operand ")
             << value << " of node " << node << " is not defined yet";
    state.operands.push_back(values[value]);
  }
  for (int32_t i = node ? graph.resultEnd[node - 1] : 0;
       i != graph.resultEnd[node]; ++i)
    state.types.push_back(types[graph.resultTypes[i]]);
  setAttributes(state, callee, attrs[graph.attr[node]],
                graph.flags[node] & Graph::Effects);
  if (graph.flags[node] & Graph::Backward)
    state.addAttribute(MPDialect::kBackwardAttrName, builder.getUnitAttr());
  Operation *op = builder.create(state);
  values.insert(values.end(), op->result_begin(), op->result_end());
  return success();
}

LogicalResult ModuleBuilder::createReturn() {
  SmallVector<Value> outputs;
  for (int32_t value : graph.outputs) {
    if (value < 0 || size_t(value) >= values.size())
      return emitError(unknown, "output ") << value << " is not defined";
    outputs.push_back(values[value]);
  }
  func::ReturnOp::create(builder, unknown, outputs);
  func.setType(builder.getFunctionType(func.getFunctionType().getInputs(),
                                       TypeRange(ValueRange(outputs))));
  return success();
}

/// Set at once: one by one, each would copy those of all the others.
LogicalResult ModuleBuilder::annotateSignature() {
  auto parseAll = [&](ArrayRef<std::string> texts,
                      SmallVectorImpl<DictionaryAttr> &dicts) {
    for (const std::string &text : texts) {
      FailureOr<DictionaryAttr> dict = parseDictionary(text);
      if (failed(dict))
        return failure();
      dicts.push_back(*dict);
    }
    return success();
  };
  SmallVector<DictionaryAttr> inputs, outputs;
  if (failed(parseAll(graph.inputAttrs, inputs)) ||
      failed(parseAll(graph.outputAttrs, outputs)))
    return failure();
  func.setAllArgAttrs(inputs);
  func.setAllResultAttrs(outputs);
  return success();
}

OwningOpRef<ModuleOp> ModuleBuilder::build() {
  if (failed(parseTables()))
    return {};
  OwningOpRef<ModuleOp> module = ModuleOp::create(unknown);
  if (failed(createFunction(*module)))
    return {};
  for (int32_t node = 0, end = graph.numNodes(); node != end; ++node)
    if (failed(createNode(node)))
      return {};
  if (failed(createReturn()) || failed(annotateSignature()))
    return {};
  return module;
}

OwningOpRef<ModuleOp> mlir::mp::buildModule(const Graph &graph,
                                            MLIRContext *context) {
  context->loadDialect<MPDialect, func::FuncDialect>();
  return ModuleBuilder(graph, context).build();
}
