# What a shared library exports: what public headers declare (include/dflow/public_headers.txt), with the headers that they include,
# and what DFLOW_API marks. All else is hidden; DflowUnits.cmake says how. A static library is compiled in the same way, so a
# compiler cache that has the one has the other. tests/consumers/exports.py checks the result.

if(NOT DFLOW_COMPILED OR NOT CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
  return()
endif()
get_target_property(dflow_type dflow TYPE)
if(dflow_type STREQUAL "SHARED_LIBRARY" AND (DFLOW_TESTS OR DFLOW_BENCHMARKS OR DFLOW_HAS_CUDA))
  message(STATUS "  the shared library exports everything: tests, benchmarks and the component cuda use internal headers")
  return()
endif()

target_compile_options(dflow_sources_usage INTERFACE -fvisibility=hidden -fvisibility-inlines-hidden)
# Instances of the standard library's templates are visible whatever the flags say.
if(dflow_type STREQUAL "SHARED_LIBRARY" AND NOT APPLE)
  target_link_options(dflow PRIVATE "LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/dflow.map")
  set_property(TARGET dflow APPEND PROPERTY LINK_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/dflow.map")
endif()
