//===- Session.cpp - one kernel, its launch and its reference -------------===//

#include "test/emulator/Tool/Session.h"
#include "codegen/Reference/KernelInterpreter.h"
#include "runtime/CUDA/Program.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::emulator;
using reference::Tensor;

Session::Session(const cuda::EmittedKernel &emitted, std::vector<Tensor> given,
                 func::FuncOp func, int64_t size)
    : arguments(std::move(given)), launch(emitted.launch), maps(emitted.maps),
      size(size) {
  for (Type type : func.getArgumentTypes())
    isDynamic |= !cast<RankedTensorType>(type).hasStaticShape();
  for (const Tensor &argument : arguments)
    buffers.push_back(pack(argument));
  for (Type type : func.getResultTypes()) {
    results.push_back(makeResult(type, size));
    buffers.push_back(pack(results.back()));
  }
}

llvm::Error Session::evaluate(func::FuncOp func) {
  auto values = reference::evaluateKernel(func, arguments);
  if (!values)
    return values.takeError();
  expected = std::move(*values);
  return llvm::Error::success();
}

/// The map as the emulator reads it.
Argument Session::mapOf(const ::mp::runtime::TensorMap &map) {
  emulator::TensorMap encoded;
  encoded.base = buffers[map.buffer].data();
  encoded.rank = uint8_t(map.rank);
  encoded.elementBytes = uint8_t(map.elementBytes());
  encoded.swizzle = emulator::TensorMap::B128;
  uint64_t bytes = map.elementBytes();
  for (int i = 0; i != map.rank; ++i) {
    encoded.sizes[i] = map.extents[i].value(&size);
    encoded.box[i] = uint16_t(map.box[i]);
    bytes *= encoded.sizes[i];
    encoded.strides[i] = bytes;
  }
  return Argument::tensorMap(encoded);
}

Launch Session::makeLaunch(int64_t resident) {
  namespace runtime = ::mp::runtime::cuda;
  runtime::Blocks blocks = runtime::blocksOf(launch.grid, &size);
  if (launch.grid.blocksPerProcessor)
    blocks.count[0] = std::min(blocks.count[0], resident);
  Launch result;
  result.grid = {unsigned(blocks.count[0]), unsigned(blocks.count[1]),
                 unsigned(blocks.count[2])};
  result.block = {launch.block[0], launch.block[1], launch.block[2]};
  result.dynamicSharedBytes = launch.dynamicSharedBytes;
  for (const ::mp::runtime::TensorMap &map : maps)
    result.args.push_back(mapOf(map));
  for (auto [i, buffer] : llvm::enumerate(buffers))
    result.args.push_back(
        i < arguments.size()
            ? Argument::input(buffer, ("argument " + Twine(i)).str())
            : Argument::output(
                  buffer, ("result " + Twine(i - arguments.size())).str()));
  if (isDynamic)
    result.args.push_back(Argument::scalar(size));
  workspace.assign(
      launch.workspaceBytes + launch.workspacePerBlock * blocks.total(), 0);
  if (!workspace.empty())
    result.args.push_back(Argument::output(workspace, "workspace"));
  return result;
}

void Session::clear() {
  for (auto &buffer : llvm::drop_begin(buffers, arguments.size()))
    std::fill(buffer.begin(), buffer.end(), '\xff');
}

void Session::readResults() {
  for (auto [i, result] : llvm::enumerate(results))
    unpack(buffers[arguments.size() + i], result);
}
