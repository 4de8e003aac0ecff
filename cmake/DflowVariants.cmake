# Kernels compiled for several levels of x86-64; the library picks one set by cpuid when it starts.
#
# Each header of include/dflow/src/units/loops/ puts its functions into namespace dflow::cpu::DFLOW_CPU_VARIANT, so that the
# linker never takes an AVX-512 body for code that runs everywhere; tools/check_variants.py proves it of the objects.

set(DFLOW_CPU_VARIANT_NAMES "")
if(NOT DFLOW_COMPILED)
  return()
endif()

dflow_units(dflow_variant_sources loops)

# Adds the variant sources to dflow, compiled with `flags` and tagged `variant`.
function(dflow_add_variant variant)
  set(target dflow_kernels_${variant})
  add_library(${target} OBJECT ${dflow_variant_sources})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(${target} PRIVATE dflow_sources_usage)
  target_compile_definitions(${target} PRIVATE DFLOW_CPU_VARIANT=${variant})
  target_compile_options(${target} PRIVATE ${DFLOW_VARIANT_OPTIMIZATION} -fno-math-errno -fno-trapping-math ${ARGN})
  target_sources(dflow PRIVATE $<TARGET_OBJECTS:${target}>)
  set(DFLOW_CPU_VARIANT_NAMES ${DFLOW_CPU_VARIANT_NAMES} ${variant} PARENT_SCOPE)
endfunction()

set(dflow_can_build_variants OFF)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$" AND CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
  include(CheckCXXCompilerFlag)
  check_cxx_compiler_flag(-march=x86-64-v4 DFLOW_COMPILER_KNOWS_X86_64_V4)
  set(dflow_can_build_variants ${DFLOW_COMPILER_KNOWS_X86_64_V4})
endif()
if(DFLOW_CPU_VARIANTS STREQUAL "ON" AND NOT dflow_can_build_variants)
  message(FATAL_ERROR "DFLOW_CPU_VARIANTS=ON needs gcc or clang for x86-64 that knows -march=x86-64-v4")
endif()

if(NOT DFLOW_CPU_VARIANTS OR NOT dflow_can_build_variants)
  dflow_add_variant(baseline)
else()
  # For processors without AVX2: a quarter of the code, which compiles in half the time.
  dflow_add_variant(baseline -fno-tree-vectorize)
  dflow_add_variant(v3 -march=x86-64-v3)
  dflow_add_variant(v4 -march=x86-64-v4 -mprefer-vector-width=512)
  foreach(target dflow dflow_kernels)
    target_compile_definitions(${target} PRIVATE DFLOW_CPU_VARIANTS_X86=1)
  endforeach()
endif()
