//===- Retarget.cpp - a kernel for the host instead of NVPTX --------------===//

#include "test/emulator/Retarget.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/AttributeMask.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/ModuleSlotTracker.h"
#include "llvm/IR/Verifier.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

using namespace llvm;
using namespace mlir::mp::emulator;

static constexpr StringLiteral intrinsicPrefix = "llvm.nvvm.";
static constexpr unsigned sharedSpace = 3;
/// More than any intrinsic has operands or results.
static constexpr unsigned areaSlots = 160;
/// Dynamic shared memory starts at a multiple of this.
static constexpr uint64_t dynamicAlignment = 1024;

/// The name of an operation; empty if the function is none.
static StringRef nameOf(const Function &function) {
  StringRef name = function.getName();
  if (name.consume_front(intrinsicPrefix) || name.consume_front(replacedPrefix))
    return name;
  return {};
}

namespace {
class Rewriter {
public:
  Rewriter(Module &module, uint64_t shared)
      : module(module), context(module.getContext()), shared(shared),
        pointer(PointerType::get(context, 0)),
        i32(IntegerType::get(context, 32)) {
    result.sites.emplace_back("unknown");
  }

  Expected<Retargeted> run(StringRef kernel);

private:
  Error findKernel(StringRef name);
  Error checkAssembly();
  void rememberTexts();
  void placeSharedVariables();
  void replaceIntrinsic(CallInst *call);
  void instrument(Instruction *access);
  void instrumentCopy(AnyMemIntrinsic *copy);
  Value *checked(Instruction *at, Value *address, Value *bytes, uint64_t align,
                 uint32_t flags);
  void dropTarget();
  void addEntry();

  std::pair<Value *, Value *> areasOf(Function &function);
  uint32_t siteOf(const Instruction *instruction);
  uint32_t operationOf(StringRef name);
  Constant *number(uint64_t value) { return ConstantInt::get(i32, value); }

  Module &module;
  LLVMContext &context;
  uint64_t shared;
  PointerType *pointer;
  IntegerType *i32;
  Function *kernel = nullptr;
  Retargeted result;
  StringMap<uint32_t> operationNumbers;
  DenseMap<Function *, std::pair<Value *, Value *>> areas;
  /// Instructions as they were before any was rewritten.
  DenseMap<const Instruction *, std::string> texts;
};
} // namespace

/// The source position, if there is one, and the instruction.
uint32_t Rewriter::siteOf(const Instruction *instruction) {
  std::string text;
  raw_string_ostream os(text);
  if (const DebugLoc &loc = instruction->getDebugLoc()) {
    loc.print(os);
    os << ": ";
  }
  os << texts.lookup(instruction);
  result.sites.push_back(text);
  return uint32_t(result.sites.size() - 1);
}

/// One numbering of values for all: printing each instruction by itself would
/// number them all again each time.
void Rewriter::rememberTexts() {
  ModuleSlotTracker slots(&module, /*ShouldInitializeAllMetadata=*/false);
  for (Function &function : module) {
    if (function.isDeclaration())
      continue;
    slots.incorporateFunction(function);
    for (Instruction &instruction : instructions(function)) {
      std::string text;
      raw_string_ostream os(text);
      instruction.print(os, slots);
      texts[&instruction] = StringRef(text).trim().str();
    }
  }
}

uint32_t Rewriter::operationOf(StringRef name) {
  auto [entry, isNew] =
      operationNumbers.try_emplace(name, result.operations.size());
  if (isNew)
    result.operations.push_back(name.str());
  return entry->second;
}

Error Rewriter::findKernel(StringRef name) {
  for (Function &function : module) {
    if (function.getCallingConv() != CallingConv::PTX_Kernel &&
        !function.hasFnAttribute("nvvm.kernel"))
      continue;
    if (!name.empty() && function.getName() != name)
      continue;
    if (kernel)
      return createStringError("the module has several kernels; name one");
    kernel = &function;
  }
  if (!kernel)
    return createStringError("the module has no kernel " + name);
  result.kernel = kernel->getName().str();
  return Error::success();
}

/// libdevice writes a reciprocal as assembly.
static bool replaceReciprocal(CallInst &call, const InlineAsm &assembly) {
  if (assembly.getAsmString() != "rcp.approx.ftz.f32 $0,$1;")
    return false;
  call.setCalledFunction(call.getModule()->getOrInsertFunction(
      "llvm.nvvm.rcp.approx.ftz.f", assembly.getFunctionType()));
  return true;
}

Error Rewriter::checkAssembly() {
  for (Function &function : module)
    for (Instruction &instruction : instructions(function))
      if (auto *call = dyn_cast<CallInst>(&instruction))
        if (auto *assembly = dyn_cast<InlineAsm>(call->getCalledOperand());
            assembly && !replaceReciprocal(*call, *assembly))
          return createStringError("cannot emulate inline assembly: " +
                                   assembly->getAsmString());
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Shared variables
//===----------------------------------------------------------------------===//

/// Static variables one after the other, then the dynamic one.
void Rewriter::placeSharedVariables() {
  const DataLayout &layout = module.getDataLayout();
  SmallVector<GlobalVariable *> dynamic;
  uint64_t offset = 0;
  auto place = [&](GlobalVariable *variable, uint64_t at) {
    Constant *address = ConstantExpr::getIntToPtr(
        ConstantInt::get(IntegerType::get(context, 64), shared + at),
        variable->getType());
    variable->replaceAllUsesWith(address);
    variable->eraseFromParent();
  };
  for (GlobalVariable &variable : make_early_inc_range(module.globals())) {
    if (variable.getAddressSpace() != sharedSpace)
      continue;
    uint64_t bytes = layout.getTypeAllocSize(variable.getValueType());
    if (bytes == 0) {
      dynamic.push_back(&variable);
      continue;
    }
    offset = alignTo(offset, std::max<uint64_t>(variable.getAlignment(), 16));
    place(&variable, offset);
    offset += bytes;
  }
  result.staticSharedBytes = offset ? alignTo(offset, dynamicAlignment) : 0;
  for (GlobalVariable *variable : dynamic)
    place(variable, result.staticSharedBytes);
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// Space for the arguments and the results of any operation, one for all of a
/// function: a frame with one for each would not fit a fiber's stack.
std::pair<Value *, Value *> Rewriter::areasOf(Function &function) {
  auto [entry, isNew] = areas.try_emplace(&function);
  if (!isNew)
    return entry->second;
  IRBuilder<> builder(&*function.getEntryBlock().begin());
  auto make = [&] {
    AllocaInst *memory = builder.CreateAlloca(
        ArrayType::get(builder.getInt8Ty(), areaSlots * slotBytes));
    memory->setAlignment(Align(slotBytes));
    return memory;
  };
  Value *arguments = make();
  entry->second = {arguments, make()};
  return entry->second;
}

/// The arguments go to memory in slots, and the results come from there, so
/// that one function serves all signatures.
void Rewriter::replaceIntrinsic(CallInst *call) {
  StringRef name = nameOf(*call->getCalledFunction());
  auto *aggregate = dyn_cast<StructType>(call->getType());
  bool hasResult = !call->getType()->isVoidTy();
  unsigned results = aggregate ? aggregate->getNumElements() : hasResult;
  auto [arguments, made] = areasOf(*call->getFunction());
  IRBuilder<> builder(call);
  assert(std::max<unsigned>(call->arg_size(), results) <= areaSlots &&
         "an intrinsic with more operands than any has");
  auto slot = [&](Value *memory, unsigned i) {
    return builder.CreateConstGEP1_32(builder.getInt8Ty(), memory,
                                      i * slotBytes);
  };
  for (auto [i, argument] : enumerate(call->args())) {
    if (argument->getType()->isMetadataTy())
      continue;
    builder.CreateStore(argument, slot(arguments, i));
  }
  FunctionCallee hook = module.getOrInsertFunction(
      operationHook, builder.getVoidTy(), i32, i32, pointer, pointer);
  CallInst *operation = builder.CreateCall(
      hook, {number(operationOf(name)), number(siteOf(call)), arguments, made});
  operation->addFnAttr(Attribute::Convergent);
  if (hasResult) {
    Value *value = nullptr;
    if (!aggregate) {
      value = builder.CreateLoad(call->getType(), slot(made, 0));
    } else {
      value = PoisonValue::get(aggregate);
      for (unsigned i = 0; i != results; ++i)
        value = builder.CreateInsertValue(
            value,
            builder.CreateLoad(aggregate->getElementType(i), slot(made, i)), i);
    }
    call->replaceAllUsesWith(value);
  }
  call->eraseFromParent();
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

/// A thread's own memory and constants need no check.
static bool isPrivate(Value *address) {
  const Value *object = getUnderlyingObject(address);
  return isa<AllocaInst>(object) || isa<GlobalVariable>(object);
}

Value *Rewriter::checked(Instruction *at, Value *address, Value *bytes,
                         uint64_t align, uint32_t flags) {
  IRBuilder<> builder(at);
  FunctionCallee hook = module.getOrInsertFunction(accessHook, pointer, pointer,
                                                   i32, i32, i32, i32);
  Value *plain = builder.CreatePointerBitCastOrAddrSpaceCast(address, pointer);
  Value *allowed = builder.CreateCall(
      hook, {plain, builder.CreateZExtOrTrunc(bytes, i32), number(align),
             number(flags), number(siteOf(at))});
  return builder.CreatePointerBitCastOrAddrSpaceCast(allowed,
                                                     address->getType());
}

void Rewriter::instrument(Instruction *access) {
  const DataLayout &layout = module.getDataLayout();
  auto check = [&](unsigned operand, Type *type, Align align, uint32_t flags) {
    Value *address = access->getOperand(operand);
    if (isPrivate(address))
      return;
    Value *bytes = number(layout.getTypeStoreSize(type));
    access->setOperand(operand,
                       checked(access, address, bytes, align.value(), flags));
  };
  if (auto *load = dyn_cast<LoadInst>(access))
    check(0, load->getType(), load->getAlign(), Read);
  else if (auto *store = dyn_cast<StoreInst>(access))
    check(1, store->getValueOperand()->getType(), store->getAlign(), Write);
  else if (auto *update = dyn_cast<AtomicRMWInst>(access))
    check(0, update->getType(), update->getAlign(), Write | Atomic);
  else if (auto *exchange = dyn_cast<AtomicCmpXchgInst>(access))
    check(0, exchange->getNewValOperand()->getType(), exchange->getAlign(),
          Write | Atomic);
  else if (auto *copy = dyn_cast<AnyMemIntrinsic>(access))
    instrumentCopy(copy);
}

void Rewriter::instrumentCopy(AnyMemIntrinsic *copy) {
  if (!isPrivate(copy->getRawDest()))
    copy->setDest(checked(copy, copy->getRawDest(), copy->getLength(),
                          copy->getDestAlign().valueOrOne().value(), Write));
  auto *transfer = dyn_cast<AnyMemTransferInst>(copy);
  if (transfer && !isPrivate(transfer->getRawSource()))
    transfer->setSource(
        checked(copy, transfer->getRawSource(), copy->getLength(),
                transfer->getSourceAlign().valueOrOne().value(), Read));
}

//===----------------------------------------------------------------------===//
// The whole module
//===----------------------------------------------------------------------===//

/// What says that code is for a GPU. Operations wait for other threads, so no
/// attribute may promise that they do not.
void Rewriter::dropTarget() {
  module.setTargetTriple(Triple(sys::getProcessTriple()));
  for (Function &function : module) {
    function.setCallingConv(CallingConv::C);
    AttributeMask gone;
    for (const char *name :
         {"target-cpu", "target-features", "nvvm.kernel", "nvvm.maxntid",
          "nvvm.reqntid", "nvvm.minctasm", "nvvm.maxnreg", "nvvm.cluster_dim"})
      gone.addAttribute(name);
    function.removeFnAttrs(gone);
    if (!function.isDeclaration()) {
      function.removeFnAttr(Attribute::Memory);
      function.removeFnAttr(Attribute::NoSync);
      function.removeFnAttr(Attribute::NoFree);
    }
    // A checked address does not come from the parameter, as far as LLVM knows.
    for (Argument &argument : function.args())
      for (Attribute::AttrKind kind :
           {Attribute::NoAlias, Attribute::ReadOnly, Attribute::WriteOnly,
            Attribute::ReadNone, Attribute::Captures})
        if (!function.isDeclaration())
          argument.removeAttr(kind);
    for (Instruction &instruction : instructions(function))
      if (auto *call = dyn_cast<CallInst>(&instruction))
        call->setCallingConv(CallingConv::C);
  }
}

void Rewriter::addEntry() {
  Type *arguments[] = {pointer};
  auto *entry = Function::Create(
      FunctionType::get(Type::getVoidTy(context), arguments, false),
      Function::ExternalLinkage, entryName, module);
  IRBuilder<> builder(BasicBlock::Create(context, "", entry));
  SmallVector<Value *> values;
  for (Argument &parameter : kernel->args()) {
    Value *slot = builder.CreateConstGEP1_32(pointer, entry->getArg(0),
                                             parameter.getArgNo());
    Value *address = builder.CreateLoad(pointer, slot);
    Type *type = parameter.getType();
    if (parameter.hasByValAttr()) {
      values.push_back(
          builder.CreatePointerBitCastOrAddrSpaceCast(address, type));
      result.parameterBytes.push_back(0);
      continue;
    }
    values.push_back(builder.CreateLoad(type, address));
    result.parameterBytes.push_back(
        module.getDataLayout().getTypeStoreSize(type));
  }
  builder.CreateCall(kernel, values);
  builder.CreateRetVoid();
  // A copy of what is by value would not be the map that the launch knows.
  for (Argument &parameter : kernel->args())
    if (parameter.hasByValAttr())
      parameter.removeAttr(Attribute::ByVal);
}

Expected<Retargeted> Rewriter::run(StringRef name) {
  if (Error error = findKernel(name))
    return std::move(error);
  if (Error error = checkAssembly())
    return std::move(error);
  rememberTexts();
  dropTarget();
  placeSharedVariables();
  SmallVector<CallInst *> intrinsics;
  SmallVector<Instruction *> accesses;
  for (Function &function : module)
    for (Instruction &instruction : instructions(function)) {
      auto *call = dyn_cast<CallInst>(&instruction);
      Function *callee = call ? call->getCalledFunction() : nullptr;
      if (callee && !nameOf(*callee).empty())
        intrinsics.push_back(call);
      else
        accesses.push_back(&instruction);
    }
  for (Instruction *access : accesses)
    instrument(access);
  for (CallInst *call : intrinsics)
    replaceIntrinsic(call);
  addEntry();
  for (Function &function : make_early_inc_range(module))
    if (function.isDeclaration() && function.use_empty())
      function.eraseFromParent();
  std::string broken;
  raw_string_ostream os(broken);
  if (verifyModule(module, &os))
    return createStringError("the rewritten kernel is wrong: " + broken);
  return std::move(result);
}

Expected<Retargeted> mlir::mp::emulator::retarget(Module &module,
                                                  uint64_t shared,
                                                  StringRef kernel) {
  return Rewriter(module, shared).run(kernel);
}
