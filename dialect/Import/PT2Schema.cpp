//===- PT2Schema.cpp - values of the export schema ------------------------===//

#include "dialect/Import/PT2Schema.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Errc.h"

#include <limits>

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::pt2;
using llvm::Error;
using llvm::Expected;
namespace json = llvm::json;

Error pt2::malformed(const Twine &what) {
  return llvm::createStringError(llvm::errc::invalid_argument,
                                 "malformed program: " + what);
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

/// Deepest nesting of brackets outside of strings.
static size_t nestingOf(StringRef text) {
  size_t depth = 0, deepest = 0;
  bool inString = false;
  for (size_t i = 0; i != text.size(); ++i) {
    char c = text[i];
    if (inString) {
      if (c == '\\' && i + 1 != text.size())
        ++i;
      else if (c == '"')
        inString = false;
      continue;
    }
    if (c == '"')
      inString = true;
    else if (c == '{' || c == '[')
      deepest = std::max(deepest, ++depth);
    else if ((c == '}' || c == ']') && depth)
      --depth;
  }
  return deepest;
}

Expected<json::Value> pt2::parseJSON(StringRef text) {
  // The parser recurses once per level; real programs have a few dozen.
  static constexpr size_t kMaxNesting = 1000;
  size_t nesting = nestingOf(text);
  if (nesting > kMaxNesting)
    return malformed("JSON is nested " + Twine(nesting) + " levels deep");
  Expected<json::Value> value = json::parse(text);
  if (!value)
    return malformed("not valid JSON: " + llvm::toString(value.takeError()));
  return value;
}

Expected<const json::Object *> pt2::getObject(const json::Object &parent,
                                              StringRef key) {
  if (const json::Object *object = parent.getObject(key))
    return object;
  return malformed("expected an object '" + key + "'");
}

Expected<const json::Array *> pt2::getArray(const json::Object &parent,
                                            StringRef key) {
  if (const json::Array *array = parent.getArray(key))
    return array;
  return malformed("expected a list '" + key + "'");
}

Expected<StringRef> pt2::getString(const json::Object &parent, StringRef key) {
  if (std::optional<StringRef> string = parent.getString(key))
    return *string;
  return malformed("expected a string '" + key + "'");
}

Expected<const json::Object *> pt2::asObject(const json::Value &value,
                                             StringRef what) {
  if (const json::Object *object = value.getAsObject())
    return object;
  return malformed("expected " + what + " to be an object");
}

Expected<Union> pt2::asUnion(const json::Value &value, StringRef what) {
  const json::Object *object = value.getAsObject();
  if (!object || object->size() != 1)
    return malformed("expected " + what + " to be an object of one key");
  return Union{object->begin()->first, &object->begin()->second};
}

Expected<double> pt2::asFloat(const json::Value &value) {
  if (std::optional<double> number = value.getAsNumber())
    return *number;
  double none = -1.0;
  double named =
      llvm::StringSwitch<double>(value.getAsString().value_or(""))
          .Case("Infinity", std::numeric_limits<double>::infinity())
          .Case("-Infinity", -std::numeric_limits<double>::infinity())
          .Case("NaN", std::numeric_limits<double>::quiet_NaN())
          .Default(none);
  if (named == none)
    return malformed("expected a number");
  return named;
}

Expected<int64_t> pt2::asInt(const json::Value &value) {
  if (std::optional<int64_t> number = value.getAsInteger())
    return *number;
  return malformed("expected an integer");
}

Expected<bool> pt2::asBool(const json::Value &value) {
  if (std::optional<bool> flag = value.getAsBoolean())
    return *flag;
  return malformed("expected true or false");
}

Expected<StringRef> pt2::asString(const json::Value &value) {
  if (std::optional<StringRef> string = value.getAsString())
    return *string;
  return malformed("expected a string");
}

//===----------------------------------------------------------------------===//
// Enumerations
//===----------------------------------------------------------------------===//

Expected<Type> pt2::scalarType(int64_t code, MLIRContext *context) {
  Builder b(context);
  switch (code) {
  case 1:
    return b.getIntegerType(8, /*isSigned=*/false);
  case 2:
    return b.getI8Type();
  case 3:
    return b.getI16Type();
  case 4:
    return b.getI32Type();
  case 5:
    return b.getI64Type();
  case 6:
    return b.getF16Type();
  case 7:
    return b.getF32Type();
  case 8:
    return b.getF64Type();
  case 9:
    return ComplexType::get(b.getF16Type());
  case 10:
    return ComplexType::get(b.getF32Type());
  case 11:
    return ComplexType::get(b.getF64Type());
  case 12:
    return b.getI1Type();
  case 13:
    return b.getBF16Type();
  case 28:
    return b.getIntegerType(16, /*isSigned=*/false);
  case 29:
    return Float8E4M3FNType::get(context);
  case 30:
    return Float8E5M2Type::get(context);
  case 31:
    return Float8E4M3FNUZType::get(context);
  case 32:
    return Float8E5M2FNUZType::get(context);
  case 33:
    return Float8E8M0FNUType::get(context);
  case 34:
    return b.getIntegerType(32, /*isSigned=*/false);
  case 35:
    return b.getIntegerType(64, /*isSigned=*/false);
  default:
    return malformed("unknown dtype number " + Twine(code));
  }
}

Expected<StringRef> pt2::layoutName(int64_t code) {
  static constexpr StringRef names[] = {
      "",           "sparse_coo", "sparse_csr", "sparse_csc",
      "sparse_bsr", "sparse_bsc", "_mkldnn",    "strided"};
  if (code < 1 || code >= int64_t(std::size(names)))
    return malformed("unknown layout number " + Twine(code));
  return names[code];
}

Expected<StringRef> pt2::memoryFormatName(int64_t code) {
  static constexpr StringRef names[] = {"", "contiguous_format",
                                        "channels_last", "channels_last_3d",
                                        "preserve_format"};
  if (code < 1 || code >= int64_t(std::size(names)))
    return malformed("unknown memory format number " + Twine(code));
  return names[code];
}

Expected<std::string> pt2::deviceName(const json::Value &device) {
  Expected<const json::Object *> object = asObject(device, "a device");
  if (!object)
    return object.takeError();
  Expected<StringRef> type = getString(**object, "type");
  if (!type)
    return type.takeError();
  if (std::optional<int64_t> index = (*object)->getInteger("index"))
    return (*type + ":" + Twine(*index)).str();
  return type->str();
}

//===----------------------------------------------------------------------===//
// Tensor types and versions
//===----------------------------------------------------------------------===//

Expected<RankedTensorType> pt2::tensorType(const json::Object &meta,
                                           MLIRContext *context) {
  std::optional<int64_t> dtype = meta.getInteger("dtype");
  if (!dtype)
    return malformed("a tensor has no dtype");
  Expected<Type> element = scalarType(*dtype, context);
  if (!element)
    return element.takeError();
  Expected<const json::Array *> sizes = getArray(meta, "sizes");
  if (!sizes)
    return sizes.takeError();
  SmallVector<int64_t> shape;
  for (const json::Value &size : **sizes) {
    Expected<Union> dim = asUnion(size, "a size");
    if (!dim)
      return dim.takeError();
    if (dim->key != "as_int") {
      shape.push_back(ShapedType::kDynamic);
      continue;
    }
    std::optional<int64_t> value = dim->value->getAsInteger();
    if (!value || *value < 0)
      return malformed("a tensor has a size that is no natural number");
    shape.push_back(*value);
  }
  return RankedTensorType::get(shape, *element);
}

Error pt2::checkVersion(const json::Object &program, std::string &warning) {
  Expected<const json::Object *> version = getObject(program, "schema_version");
  if (!version)
    return version.takeError();
  int64_t major = (*version)->getInteger("major").value_or(-1);
  int64_t minor = (*version)->getInteger("minor").value_or(-1);
  if (major != kSchemaMajor)
    return llvm::createStringError(
        llvm::errc::not_supported,
        "export schema version is " + Twine(major) + "." + Twine(minor) +
            ", expected major version " + Twine(kSchemaMajor) +
            "; export the model again with PyTorch 2.11 to 2.15");
  if (minor > kNewestMinor)
    warning = ("export schema version " + Twine(major) + "." + Twine(minor) +
               " is newer than " + Twine(kSchemaMajor) + "." +
               Twine(kNewestMinor) + "; fields it added are not read")
                  .str();
  return Error::success();
}
