//===- ImportFixtures.cpp - small inputs for the loader's tests -----------===//

#include "test/unit/ImportFixtures.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/CRC.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::test;

namespace {
/// Little-endian numbers and texts, one after the other.
struct Bytes {
  std::string data;
  Bytes &u16(uint64_t value) { return number(value, 2); }
  Bytes &u32(uint64_t value) { return number(value, 4); }
  Bytes &u64(uint64_t value) { return number(value, 8); }
  Bytes &text(StringRef value) {
    data += value;
    return *this;
  }
  Bytes &number(uint64_t value, int size) {
    for (int i = 0; i != size; ++i)
      data += char(value >> (8 * i));
    return *this;
  }
};
} // namespace

static uint32_t crcOf(StringRef text) {
  return llvm::crc32(llvm::ArrayRef<uint8_t>(
      reinterpret_cast<const uint8_t *>(text.data()), text.size()));
}

std::string test::makeZip(llvm::ArrayRef<ZipMember> members, bool zip64) {
  Bytes out, directory;
  for (const ZipMember &member : members) {
    uint64_t offset = out.data.size(), size = member.content.size();
    uint32_t crc = crcOf(member.content);
    out.u32(0x04034b50).u16(0).u16(0).u16(member.method).u32(0).u32(crc);
    out.u32(size).u32(size).u16(member.name.size()).u16(3);
    out.text(member.name).text("pad").text(member.content);

    uint64_t shown = zip64 ? 0xffffffff : size;
    directory.u32(0x02014b50).u16(0).u16(0).u16(0).u16(member.method).u32(0);
    directory.u32(crc).u32(shown).u32(shown).u16(member.name.size());
    directory.u16(zip64 ? 28 : 0).u16(0).u16(0).u16(0).u32(0);
    directory.u32(zip64 ? 0xffffffff : offset).text(member.name);
    if (zip64)
      directory.u16(1).u16(24).u64(size).u64(size).u64(offset);
  }
  uint64_t start = out.data.size(), size = directory.data.size();
  out.text(directory.data);
  if (zip64) {
    uint64_t record = out.data.size();
    out.u32(0x06064b50).u64(44).u16(0).u16(0).u32(0).u32(0);
    out.u64(members.size()).u64(members.size()).u64(size).u64(start);
    out.u32(0x07064b50).u32(0).u64(record).u32(1);
  }
  out.u32(0x06054b50).u16(0).u16(0);
  out.u16(zip64 ? 0xffff : members.size()).u16(zip64 ? 0xffff : members.size());
  out.u32(zip64 ? 0xffffffff : size).u32(zip64 ? 0xffffffff : start).u16(0);
  return out.data;
}

std::string test::programText(int major, int minor) {
  std::string text = R"json({
"schema_version": {"major": MAJOR, "minor": MINOR}, "a_new_field": [1],
"graph_module": {
 "signature": {
  "input_specs": [
   {"parameter": {"arg": {"name": "p_w"}, "parameter_name": "fc.weight"}},
   {"user_input": {"arg": {"as_tensor": {"name": "x"}}}},
   {"constant_input": {"name": "flag", "value": {"as_bool": true}}}],
  "output_specs": [
   {"user_output": {"arg": {"as_tensor": {"name": "y"}}}},
   {"user_output": {"arg": {"as_int": 3}}},
   {"user_output": {"arg": {"as_sym_int": {"as_name": "n"}}}}]},
 "graph": {
  "inputs": [{"as_tensor": {"name": "p_w"}}, {"as_tensor": {"name": "x"}},
             {"as_bool": true}],
  "outputs": [{"as_tensor": {"name": "y"}}, {"as_int": 3},
              {"as_sym_int": {"as_name": "n"}}],
  "nodes": [
   {"target": "torch.ops.aten.sym_size.int", "name": "n",
    "inputs": [{"name": "self", "arg": {"as_tensor": {"name": "x"}}, "kind": 1},
               {"name": "dim", "arg": {"as_int": 0}, "kind": 1}],
    "outputs": [{"as_sym_int": {"as_name": "n"}}], "metadata": {}},
   {"target": "torch.ops.higher_order.wrap_with_autocast", "name": "region",
    "inputs": [{"name": "", "arg": {"as_string": "cpu"}},
     {"name": "", "arg": {"as_scalar_type": 13}},
     {"name": "", "arg": {"as_bool": true}},
     {"name": "", "arg": {"as_none": true}},
     {"name": "", "arg": {"as_graph": {"name": "body", "graph": {
      "inputs": [{"as_tensor": {"name": "a"}}, {"as_tensor": {"name": "b"}}],
      "outputs": [{"as_tensor": {"name": "h"}}],
      "nodes": [{"target": "torch.ops.aten.linear.default", "name": "h",
       "inputs": [{"name": "input", "arg": {"as_tensor": {"name": "a"}}},
                  {"name": "weight", "arg": {"as_tensor": {"name": "b"}}}],
       "outputs": [{"as_tensor": {"name": "h"}}],
       "metadata": {"nn_module_stack": "L,,Net;L__fc,fc@1,Linear",
        "stack_trace": "File \"net.py\", line 7, in forward\n y = fc(x)"}}],
      "tensor_values": {"h": {"dtype": 13, "sizes": [
        {"as_expr": {"expr_str": "s0"}}, {"as_int": 2}]}}}}}},
     {"name": "", "arg": {"as_tensor": {"name": "x"}}},
     {"name": "", "arg": {"as_tensor": {"name": "p_w"}}}],
    "outputs": [{"as_tensor": {"name": "h"}}], "metadata": {}},
   {"target": "torch.ops.aten.masked_fill.Scalar", "name": "y",
    "inputs": [{"name": "self", "arg": {"as_tensor": {"name": "h"}}},
               {"name": "mask", "arg": {"as_optional_tensor": {"as_none": true}}},
               {"name": "other", "arg": {"as_tensor": {"name": "h"}}},
               {"name": "size", "arg": {"as_sym_ints": [{"as_name": "n"},
                                                        {"as_int": -1}]}},
               {"name": "value", "arg": {"as_float": "-Infinity"}}],
    "outputs": [{"as_tensor": {"name": "y"}}], "metadata": {}}],
  "tensor_values": {
   "p_w": {"dtype": 7, "sizes": [{"as_int": 2}, {"as_int": 4}],
           "device": {"type": "cpu", "index": null}},
   "x": {"dtype": 7, "sizes": [{"as_expr": {"expr_str": "s0"}}, {"as_int": 4}]},
   "h": {"dtype": 13, "sizes": [{"as_expr": {"expr_str": "s0"}}, {"as_int": 2}]},
   "y": {"dtype": 13, "sizes": [{"as_expr": {"expr_str": "s0"}}, {"as_int": 2}]}
  }}}})json";
  auto set = [&](StringRef key, int value) {
    text.replace(text.find(key.str()), key.size(), std::to_string(value));
  };
  set("MAJOR", major);
  set("MINOR", minor);
  return text;
}

std::string test::archiveText() {
  std::string config = R"({"config": {
    "fc.weight": {"path_name": "weight_0", "is_param": true, "use_pickle": false},
    "tied.weight": {"path_name": "weight_0", "is_param": true, "use_pickle": false},
    "packed": {"path_name": "weight_1", "is_param": true, "use_pickle": true}}})";
  return makeZip({{"net/archive_format", "pt2"},
                  {"net/models/model.json", programText()},
                  {"net/data/weights/weight_0", std::string(32, '\1')},
                  {"net/data/weights/weight_1", "a pickle"},
                  {"net/data/weights/model_weights_config.json", config}});
}

std::string test::load(StringRef bytes, StringRef name, StringRef model) {
  static MLIRContext context(MLIRContext::Threading::DISABLED);
  auto module = loadBuffer(llvm::MemoryBuffer::getMemBufferCopy(bytes, name),
                           &context, model);
  if (!module)
    return "error: " + llvm::toString(module.takeError());
  std::string text;
  llvm::raw_string_ostream stream(text);
  (*module)->print(stream, OpPrintingFlags().enableDebugInfo());
  return text;
}
