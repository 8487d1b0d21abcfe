//===- Call.cpp - from tensors to buffers ---------------------------------===//

#include "runtime/Torch/Call.h"
#include <torch/csrc/stable/ops.h>

using mp::launch::Call;
using mp::runtime::Element;
using mp::runtime::Entry;
using mp::runtime::TensorType;
using torch::stable::Tensor;

static std::atomic<int64_t> copyCount{0};

int64_t Call::copies() { return copyCount.load(std::memory_order_relaxed); }

/// PyTorch's number of an element type.
static int32_t dtypeOf(Element element) {
  static const int32_t table[] = {
      aoti_torch_dtype_float16(), aoti_torch_dtype_bfloat16(),
      aoti_torch_dtype_float32(), aoti_torch_dtype_bool(),
      aoti_torch_dtype_int8(),    aoti_torch_dtype_int32(),
      aoti_torch_dtype_int64()};
  return table[size_t(element)];
}

static bool fits(const Tensor &tensor, const TensorType &type,
                 const int64_t *sizes) {
  int32_t dtype;
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(tensor.get(), &dtype));
  auto extents = tensor.sizes();
  if (dtype != dtypeOf(type.element) || extents.size() != type.dims.size())
    return false;
  for (size_t i = 0; i != type.dims.size(); ++i) {
    bool dynamic = type.dims[i] == TensorType::kDynamic;
    if (extents[i] != (dynamic ? sizes[0] : type.dims[i]))
      return false;
  }
  return true;
}

static std::string textOf(const TensorType &type) {
  std::string text;
  for (int64_t dim : type.dims)
    text += (dim == TensorType::kDynamic ? "?" : std::to_string(dim)) + "x";
  return text += stringifyElement(type.element);
}

Call::Call(const Entry &entry, const std::vector<Tensor> &inputs,
           const std::vector<int64_t> &sizes, Alignment alignment)
    : sizes(sizes.data()), sizeCount(sizes.size()), entry(entry) {
  const auto &types = entry.signature.arguments;
  STD_TORCH_CHECK(inputs.size() == types.size(),
                  "mpopt::region: the kernel takes ", types.size(),
                  " inputs, not ", inputs.size());
  STD_TORCH_CHECK(sizes.size() == entry.signature.sizeCount(),
                  "mpopt::region: the kernel takes ",
                  entry.signature.sizeCount(), " sizes, not ", sizes.size());
  STD_TORCH_CHECK(!inputs.empty(), "mpopt::region: a kernel without inputs");
  aoti_torch_get_device_type(inputs[0].get(), &deviceType);
  aoti_torch_get_device_index(inputs[0].get(), &deviceIndex);
  buffers.reserve(types.size() + entry.signature.results.size());
  for (size_t i = 0; i != inputs.size(); ++i)
    buffers.push_back(const_cast<void *>(addressOf(inputs[i], i, alignment)));
  results.reserve(entry.signature.results.size());
  for (const TensorType &type : entry.signature.results)
    addResult(type);
}

const void *Call::addressOf(const Tensor &input, size_t number,
                            Alignment alignment) {
  const TensorType &type = entry.signature.arguments[number];
  STD_TORCH_CHECK(fits(input, type, sizes), "mpopt::region: input ", number,
                  " is no tensor of ", textOf(type),
                  sizeCount ? " for the given size" : "");
  int32_t device;
  aoti_torch_get_device_type(input.get(), &device);
  STD_TORCH_CHECK(device == deviceType, "mpopt::region: input ", number,
                  " is on another device than input 0");
  const void *address = input.const_data_ptr();
  bool aligned = reinterpret_cast<uintptr_t>(address) % alignment == 0;
  if (input.is_contiguous() && aligned)
    return address;
  copyCount.fetch_add(1, std::memory_order_relaxed);
  Tensor dense = torch::stable::clone(torch::stable::contiguous(input));
  copied.push_back(dense);
  return dense.const_data_ptr();
}

void Call::addResult(const TensorType &type) {
  std::vector<int64_t> shape = type.dims, strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- != 0;) {
    shape[i] = shape[i] == TensorType::kDynamic ? sizes[0] : shape[i];
    strides[i] = stride;
    stride *= std::max<int64_t>(shape[i], 1);
  }
  AtenTensorHandle handle;
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(
      int64_t(shape.size()), shape.data(), strides.data(),
      dtypeOf(type.element), deviceType, deviceIndex, &handle));
  results.emplace_back(handle);
  buffers.push_back(results.back().mutable_data_ptr());
}
