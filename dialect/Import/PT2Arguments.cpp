//===- PT2Arguments.cpp - arguments of nodes ------------------------------===//

#include "dialect/Import/PT2Nodes.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::pt2;
using llvm::Error;
using llvm::Expected;
namespace json = llvm::json;

StringRef pt2::valueName(Union argument) {
  const json::Object *object = argument.value->getAsObject();
  if (!object)
    return {};
  StringRef field =
      llvm::StringSwitch<StringRef>(argument.key)
          .Cases({"as_tensor", "as_custom_obj"}, "name")
          .Cases({"as_sym_int", "as_sym_float", "as_sym_bool"}, "as_name")
          .Default("");
  if (field.empty())
    return {};
  return object->getString(field).value_or("");
}

Expected<SmallVector<StringRef>> pt2::valueNames(const json::Value &argument) {
  Expected<Union> kind = asUnion(argument, "an output");
  if (!kind)
    return kind.takeError();
  if (kind->key != "as_tensors" && kind->key != "as_optional_tensors")
    return SmallVector<StringRef>{valueName(*kind)};
  const json::Array *list = kind->value->getAsArray();
  if (!list)
    return malformed("expected a list of output tensors");
  SmallVector<StringRef> names;
  for (const json::Value &element : *list) {
    const json::Object *object = element.getAsObject();
    if (!object)
      return malformed("expected an output tensor");
    if (const json::Object *tensor = object->getObject("as_tensor"))
      object = tensor;
    names.push_back(object->getString("name").value_or(""));
  }
  return names;
}

Error NodeArguments::add(StringRef name, const json::Value &argument) {
  Expected<Union> kind = asUnion(argument, "argument '" + name.str() + "'");
  if (!kind)
    return kind.takeError();
  bool isPlainTensor = kind->key == "as_tensor";
  Expected<Attribute> attr = convert(*kind);
  if (!attr)
    return attr.takeError();
  if (isPlainTensor && onlyPlainTensors)
    return Error::success();
  // None may stand for a tensor; after it, each tensor is named.
  StringRef key = kind->key;
  if (key.contains("tensor") || key == "as_none")
    onlyPlainTensors = false;
  argAttrs.set(name, *attr);
  return Error::success();
}

Expected<Attribute> NodeArguments::addOperand(StringRef name) {
  Value value = values.lookup(name);
  if (!value)
    return malformed("value '" + name + "' is used before it is defined");
  operandList.push_back(value);
  return builder.getStringAttr("%" + Twine(operandList.size() - 1));
}

/// {"name": n}, or an optional tensor's {"as_tensor": {"name": n}}.
Expected<Attribute> NodeArguments::addTensor(const json::Value &value) {
  Expected<const json::Object *> object = asObject(value, "a tensor");
  if (!object)
    return object.takeError();
  if ((*object)->get("as_none"))
    return builder.getUnitAttr();
  if (const json::Object *tensor = (*object)->getObject("as_tensor"))
    *object = tensor;
  Expected<StringRef> name = getString(**object, "name");
  if (!name)
    return name.takeError();
  return addOperand(*name);
}

Expected<Attribute> NodeArguments::addSymbolic(const json::Value &value) {
  Expected<Union> kind = asUnion(value, "a symbolic number");
  if (!kind)
    return kind.takeError();
  if (kind->key != "as_name")
    return convertScalar(*kind);
  Expected<StringRef> name = asString(*kind->value);
  if (!name)
    return name.takeError();
  return addOperand(*name);
}

/// The attribute of an expected value, made by `make`.
template <typename T, typename Make>
static Expected<Attribute> attrOf(Expected<T> value, Make make) {
  if (!value)
    return value.takeError();
  return Attribute(make(*value));
}

Expected<Attribute> NodeArguments::convertScalar(Union argument) {
  const json::Value &value = *argument.value;
  if (argument.key == "as_int")
    return attrOf(asInt(value),
                  [&](int64_t v) { return builder.getI64IntegerAttr(v); });
  if (argument.key == "as_float")
    return attrOf(asFloat(value),
                  [&](double v) { return builder.getF64FloatAttr(v); });
  if (argument.key == "as_bool")
    return attrOf(asBool(value),
                  [&](bool v) { return builder.getBoolAttr(v); });
  if (argument.key == "as_string" || argument.key == "as_operator")
    return attrOf(asString(value),
                  [&](StringRef v) { return builder.getStringAttr(v); });
  return malformed("unknown kind of argument '" + argument.key + "'");
}

Expected<Attribute> NodeArguments::convertEnum(Union argument) {
  if (argument.key == "as_device")
    return attrOf(deviceName(*argument.value), [&](const std::string &v) {
      return builder.getStringAttr(v);
    });
  Expected<int64_t> code = asInt(*argument.value);
  if (!code)
    return code.takeError();
  if (argument.key == "as_scalar_type")
    return attrOf(scalarType(*code, builder.getContext()),
                  [&](Type v) { return TypeAttr::get(v); });
  return attrOf(argument.key == "as_layout" ? layoutName(*code)
                                            : memoryFormatName(*code),
                [&](StringRef v) { return builder.getStringAttr(v); });
}

/// Lists of anything; the element's kind follows from the list's.
Expected<Attribute> NodeArguments::convertList(Union argument) {
  const json::Array *list = argument.value->getAsArray();
  if (!list)
    return malformed("expected '" + argument.key + "' to hold a list");
  StringRef element = llvm::StringSwitch<StringRef>(argument.key)
                          .Case("as_ints", "as_int")
                          .Case("as_floats", "as_float")
                          .Case("as_bools", "as_bool")
                          .Case("as_strings", "as_string")
                          .Case("as_int_lists", "as_ints")
                          .Case("as_float_lists", "as_floats")
                          .Case("as_nested_tensors", "as_tensors")
                          .Default("");
  bool isTensors =
      argument.key == "as_tensors" || argument.key == "as_optional_tensors";
  SmallVector<Attribute> attrs;
  for (const json::Value &value : *list) {
    Expected<Attribute> attr = !element.empty() ? convert({element, &value})
                               : isTensors      ? addTensor(value)
                                                : addSymbolic(value);
    if (!attr)
      return attr.takeError();
    attrs.push_back(*attr);
  }
  return builder.getArrayAttr(attrs);
}

Expected<Attribute> NodeArguments::convertDictionary(const json::Value &value) {
  Expected<const json::Object *> object = asObject(value, "a dictionary");
  if (!object)
    return object.takeError();
  NamedAttrList entries;
  for (const auto &[key, element] : **object) {
    Expected<Union> kind = asUnion(element, "a dictionary entry");
    if (!kind)
      return kind.takeError();
    Expected<Attribute> attr = convert(*kind);
    if (!attr)
      return attr.takeError();
    entries.set(key.str().empty() ? StringRef("_") : StringRef(key), *attr);
  }
  return entries.getDictionary(builder.getContext());
}

Expected<Attribute> NodeArguments::convert(Union argument) {
  StringRef key = argument.key;
  if (key == "as_none")
    return builder.getUnitAttr();
  if (key == "as_tensor" || key == "as_optional_tensor")
    return addTensor(*argument.value);
  if (key == "as_custom_obj")
    return addTensor(*argument.value);
  if (key == "as_sym_int" || key == "as_sym_float" || key == "as_sym_bool")
    return addSymbolic(*argument.value);
  if (key == "as_scalar_type" || key == "as_memory_format" ||
      key == "as_layout" || key == "as_device")
    return convertEnum(argument);
  if (key == "as_string_to_argument")
    return convertDictionary(*argument.value);
  if (key == "as_complex") {
    const json::Object *parts = argument.value->getAsObject();
    const json::Value *re = parts ? parts->get("real") : nullptr;
    const json::Value *im = parts ? parts->get("imag") : nullptr;
    if (!re || !im)
      return malformed("expected a complex number to have real and imag");
    json::Array pair{*re, *im};
    json::Value list(std::move(pair));
    return convertList({"as_floats", &list});
  }
  if (key == "as_graph") {
    const json::Object *graph = argument.value->getAsObject();
    return builder.getStringAttr(
        "@" + (graph ? graph->getString("name").value_or("") : StringRef()));
  }
  return key.ends_with("s") ? convertList(argument) : convertScalar(argument);
}
