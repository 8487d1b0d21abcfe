//===- PT2Schema.h - values of the export schema ---------------*- C++ -*-===//
//
// Reads the JSON of PyTorch's export schema, major version 8: fields that it
// does not know are left alone, fields that it needs are checked. Each function
// that fails says what it expected.
//
//===----------------------------------------------------------------------===//

#ifndef MP_DIALECT_IMPORT_PT2SCHEMA_H
#define MP_DIALECT_IMPORT_PT2SCHEMA_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace mlir::mp::pt2 {

inline constexpr int64_t kSchemaMajor = 8;
inline constexpr int64_t kNewestMinor = 20;

/// "malformed program: <what>".
llvm::Error malformed(const llvm::Twine &what);

/// Parses JSON of any size; refuses nesting that would exhaust the stack.
llvm::Expected<llvm::json::Value> parseJSON(llvm::StringRef text);

llvm::Expected<const llvm::json::Object *>
getObject(const llvm::json::Object &parent, llvm::StringRef key);
llvm::Expected<const llvm::json::Array *>
getArray(const llvm::json::Object &parent, llvm::StringRef key);
llvm::Expected<llvm::StringRef> getString(const llvm::json::Object &parent,
                                          llvm::StringRef key);
/// The object `value` must be, for lists of objects.
llvm::Expected<const llvm::json::Object *>
asObject(const llvm::json::Value &value, llvm::StringRef what);

/// A union: an object of one key, {"as_tensor": {...}}.
struct Union {
  llvm::StringRef key;
  const llvm::json::Value *value;
};
llvm::Expected<Union> asUnion(const llvm::json::Value &value,
                              llvm::StringRef what);

/// A float; writers spell those that JSON lacks as "Infinity", "-Infinity"
/// and "NaN".
llvm::Expected<double> asFloat(const llvm::json::Value &value);
llvm::Expected<int64_t> asInt(const llvm::json::Value &value);
llvm::Expected<bool> asBool(const llvm::json::Value &value);
llvm::Expected<llvm::StringRef> asString(const llvm::json::Value &value);

/// The element type that a ScalarType number stands for.
llvm::Expected<Type> scalarType(int64_t code, MLIRContext *context);
/// "strided", "contiguous_format": the names of a Layout and a MemoryFormat.
llvm::Expected<llvm::StringRef> layoutName(int64_t code);
llvm::Expected<llvm::StringRef> memoryFormatName(int64_t code);
/// "cuda:0" or "cpu".
llvm::Expected<std::string> deviceName(const llvm::json::Value &device);

/// The type of a TensorMeta; a symbolic size is a dynamic dimension.
llvm::Expected<RankedTensorType> tensorType(const llvm::json::Object &meta,
                                            MLIRContext *context);

/// Fails unless the program's schema has our major version. `warning` receives
/// a sentence when the minor version is newer than any that we know.
llvm::Error checkVersion(const llvm::json::Object &program,
                         std::string &warning);

} // namespace mlir::mp::pt2

#endif // MP_DIALECT_IMPORT_PT2SCHEMA_H
