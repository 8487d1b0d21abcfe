# Small wrappers, so that a folder's CMakeLists.txt only names its files.

# One precompiled header for all libraries: parsing MLIR's headers is most of
# the time that a source of ours takes to build.
function(mpopt_precompile target)
  target_precompile_headers(${target} PRIVATE
    "$<$<COMPILE_LANGUAGE:CXX>:mlir/IR/BuiltinOps.h>"
    "$<$<COMPILE_LANGUAGE:CXX>:mlir/IR/PatternMatch.h>"
    "$<$<COMPILE_LANGUAGE:CXX>:mlir/Dialect/Func/IR/FuncOps.h>"
    "$<$<COMPILE_LANGUAGE:CXX>:mlir/Pass/Pass.h>"
    "$<$<COMPILE_LANGUAGE:CXX>:llvm/Support/JSON.h>")
endfunction()

# mpopt_library(NAME source... [LINK lib...] [DEPENDS target...]): code that
# follows LLVM's rules (no exceptions).
function(mpopt_library name)
  cmake_parse_arguments(ARG "" "" "LINK;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC mpopt_llvm ${ARG_LINK})
  target_compile_options(${name} PRIVATE -fno-exceptions
    $<$<NOT:$<BOOL:${LLVM_ENABLE_RTTI}>>:-fno-rtti>)
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  if(NOT name STREQUAL "mpopt_pch")
    target_precompile_headers(${name} REUSE_FROM mpopt_pch)
  endif()
endfunction()

# Owns the precompiled header that the other libraries share.
file(WRITE ${CMAKE_BINARY_DIR}/pch.cpp "")
mpopt_library(mpopt_pch ${CMAKE_BINARY_DIR}/pch.cpp)
mpopt_precompile(mpopt_pch)

# mpopt_hide_symbols(TARGET): a library shows only what exports.map names, so
# that it can share a process with another LLVM.
set(MPOPT_EXPORTS "${CMAKE_CURRENT_LIST_DIR}/exports.map")
function(mpopt_hide_symbols target)
  target_link_options(${target} PRIVATE
    "-Wl,--version-script=${MPOPT_EXPORTS}")
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${MPOPT_EXPORTS}")
endfunction()
