# Finds LLVM/MLIR 22 and defines mpopt_llvm: everything that a target of ours
# needs from them.

# MLIR's version file accepts only an equal major.minor, so ask for none and
# check the major version here.
find_package(MLIR REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
if(NOT LLVM_VERSION_MAJOR EQUAL 22)
  message(FATAL_ERROR "mpopt needs LLVM/MLIR 22, found ${LLVM_PACKAGE_VERSION} "
    "in ${MLIR_DIR}; install libmlir-22-dev or set MLIR_DIR")
endif()
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include(TableGen)
include(AddLLVM)
include(AddMLIR)

# mlir-tblgen sees the include directories of the folder, not of a target.
include_directories(SYSTEM ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
include_directories(${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR})

# We do not include HandleLLVMOptions: it would put LLVM's warning set and -O
# flags on third-party targets too.
add_library(mpopt_llvm INTERFACE)
separate_arguments(LLVM_DEFS NATIVE_COMMAND "${LLVM_DEFINITIONS}")
target_compile_definitions(mpopt_llvm INTERFACE ${LLVM_DEFS})
target_compile_options(mpopt_llvm INTERFACE -Wall -Wextra -Wno-unused-parameter
  -fvisibility=hidden -fvisibility-inlines-hidden)
target_link_options(mpopt_llvm INTERFACE -Wl,--as-needed)

# The archives of a static build, beyond their dependencies: of the compiler,
# and of the code generator. The linker takes only what a target uses.
set(MPOPT_STATIC_COMPONENTS MLIRFuncDialect MLIRFuncAllExtensions MLIRParser
  MLIRBytecodeReader MLIRBytecodeWriter MLIRTransforms MLIRPass MLIROptLib
  MLIRSupport MLIRIR MLIRRemarkStreamer MLIRArithDialect MLIRLinalgDialect
  MLIRMathDialect MLIRTensorDialect
  MLIRAffineToStandard MLIRArithToLLVM MLIRArithTransforms
  MLIRBuiltinToLLVMIRTranslation MLIRControlFlowToLLVM MLIRFuncToLLVM
  MLIRGPUToLLVMIRTranslation MLIRGPUToNVVMTransforms MLIRIndexToLLVM
  MLIRLLVMToLLVMIRTranslation MLIRMathToLLVM MLIRMathToLibm MLIRMathTransforms
  MLIRMemRefToLLVM MLIRMemRefTransforms MLIRNVGPUToNVVM
  MLIRNVVMToLLVM MLIRNVVMToLLVMIRTranslation MLIRReconcileUnrealizedCasts
  MLIRSCFToControlFlow MLIRTargetLLVMIRExport MLIRUBToLLVM MLIRVectorToLLVM
  MLIRVectorToLLVMPass MLIRVectorToSCF)
set(MPOPT_STATIC_LLVM_COMPONENTS core support remarks
  irreader linker native NVPTX orcjit passes)

# A packaged MLIR names the shared libLLVM (and Debian's execution engine the
# shared libMLIR); with both kinds in one process it hangs. Archives only.
function(mpopt_find_llvm_archives result)
  llvm_map_components_to_libnames(llvm_libs ${MPOPT_STATIC_LLVM_COMPONENTS})
  set(archives ${MLIR_EXPORTED_TARGETS})
  list(REMOVE_ITEM archives MLIR)
  foreach(lib ${archives})
    get_target_property(needs ${lib} INTERFACE_LINK_LIBRARIES)
    if(needs)
      list(TRANSFORM needs REPLACE "^(.<LINK_ONLY:)?LLVM>?$" "${llvm_libs}")
      list(FILTER needs EXCLUDE REGEX "^MLIR$")
      set_target_properties(${lib} PROPERTIES INTERFACE_LINK_LIBRARIES "${needs}")
    endif()
  endforeach()
  set(${result} ${MPOPT_STATIC_COMPONENTS} ${llvm_libs} PARENT_SCOPE)
endfunction()

# A target with the property MPOPT_LLVM_ARCHIVES takes what it needs from the
# archives. The others take the two shared libraries, which hold all of MLIR and
# LLVM: naming a component library as well (libMLIRIR.a, ...) would put a second
# copy in the process.
mpopt_find_llvm_archives(archives)
target_link_libraries(mpopt_llvm INTERFACE
  "$<IF:$<BOOL:$<TARGET_PROPERTY:MPOPT_LLVM_ARCHIVES>>,${archives},MLIR;LLVM>")
define_property(TARGET PROPERTY MPOPT_LLVM_ARCHIVES
  INITIALIZE_FROM_VARIABLE MPOPT_LLVM_ARCHIVES)
if(MPOPT_STATIC_LLVM)
  set(MPOPT_LLVM_ARCHIVES ON)
endif()

# LLVM's linker takes a tenth of the time. It is the one beside the archives;
# "lld" alone would be any on PATH. Debug records are LLVM's, not ours.
set(archive_options -Wl,--gc-sections -Wl,--strip-debug)
if(EXISTS ${LLVM_TOOLS_BINARY_DIR}/ld.lld)
  list(APPEND archive_options -fuse-ld=lld -B${LLVM_TOOLS_BINARY_DIR})
endif()
target_link_options(mpopt_llvm INTERFACE
  "$<$<BOOL:$<TARGET_PROPERTY:MPOPT_LLVM_ARCHIVES>>:${archive_options}>")
