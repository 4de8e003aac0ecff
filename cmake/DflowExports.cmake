# What a shared library exports: what public headers declare (include/dflow/public_headers.txt), with the headers that they include,
# and what DFLOW_API marks. All else is hidden.
#
# Every unit of the library begins with the public headers in one region of default visibility. A header's guard leaves it
# there, so whatever the unit includes later is hidden. tests/consumers/exports.py checks the result.

if(NOT DFLOW_COMPILED)
  return()
endif()
get_target_property(dflow_type dflow TYPE)
if(NOT dflow_type STREQUAL "SHARED_LIBRARY" OR NOT CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
  return()
endif()
if(DFLOW_TESTS OR DFLOW_BENCHMARKS OR DFLOW_HAS_CUDA)
  message(STATUS "  the shared library exports everything: tests, benchmarks and the component cuda use internal headers")
  return()
endif()

set(dflow_list "${PROJECT_SOURCE_DIR}/include/dflow/public_headers.txt")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${dflow_list}")
file(STRINGS "${dflow_list}" dflow_headers REGEX "^[a-z]")
# Bodies, headers that need a library of others, and CUDA's.
list(FILTER dflow_headers EXCLUDE REGEX "^src[/.]|^interop/|^net/asio\\.hpp|cuda")
set(dflow_includes "#pragma once\n#pragma GCC visibility push(default)\n")
foreach(header IN LISTS dflow_headers)
  file(STRINGS "${PROJECT_SOURCE_DIR}/include/dflow/${header}" moved REGEX "^#pragma message")
  if(NOT moved)
    string(APPEND dflow_includes "#include <dflow/${header}>\n")
  endif()
endforeach()
string(APPEND dflow_includes "#pragma GCC visibility pop\n")
set(dflow_exported "${PROJECT_BINARY_DIR}/exported/dflow_exported.hpp")
file(CONFIGURE OUTPUT "${dflow_exported}" CONTENT "${dflow_includes}" @ONLY)

set(dflow_hidden -fvisibility=hidden -fvisibility-inlines-hidden)
foreach(target IN ITEMS dflow dflow_kernels)
  target_compile_options(${target} PRIVATE ${dflow_hidden} "SHELL:-include \"${dflow_exported}\"")
endforeach()
# Loops export nothing, and see no header that others see.
foreach(variant IN LISTS DFLOW_CPU_VARIANT_NAMES)
  target_compile_options(dflow_kernels_${variant} PRIVATE ${dflow_hidden})
endforeach()
# Instances of the standard library's templates are visible whatever the flags say.
if(NOT APPLE)
  target_link_options(dflow PRIVATE "LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/dflow.map")
  set_property(TARGET dflow APPEND PROPERTY LINK_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/dflow.map")
endif()
