# What a builder may choose. Everything that follows reads these and nothing else from the outside.

option(DFLOW_COMPILED "Build the compiled library dflow::dflow (OFF leaves dflow::src alone)" ON)
option(DFLOW_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(DFLOW_EXAMPLES "Build the examples" ${PROJECT_IS_TOP_LEVEL})
option(DFLOW_TOOLS "Build the programs under tools/" ${PROJECT_IS_TOP_LEVEL})
option(DFLOW_BENCHMARKS "Build the benchmarks" OFF)
option(DFLOW_INSTALL "Generate the install rules and the package files" ON)
option(DFLOW_TEST_PER_CASE "Register each test case with CTest (OFF: each test program)" ON)
set(DFLOW_LIBFUZZER OFF CACHE STRING "Build the fuzz targets as libFuzzer programs too, on the same library: ON, OFF, or AUTO with clang")
set(DFLOW_TEST_FLOORS "" CACHE STRING "Folders of tests/ to build, such as net or net/simulation; empty means all")
set(DFLOW_SANITIZE "" CACHE STRING "Value of -fsanitize= for everything that is built here")

# Optional components: AUTO takes what is installed, ON insists, OFF leaves it out.
foreach(component ONEDNN ZLIB OPENSSL IMAGE CUDA CUDNN NVRTC NCCL)
  set(DFLOW_WITH_${component} AUTO CACHE STRING "AUTO, ON or OFF")
  set_property(CACHE DFLOW_WITH_${component} PROPERTY STRINGS AUTO ON OFF)
endforeach()

set(DFLOW_CPU_VARIANTS AUTO CACHE STRING "Also build the kernels for x86-64-v3 and AVX-512: AUTO, ON or OFF")
set_property(CACHE DFLOW_CPU_VARIANTS PROPERTY STRINGS AUTO ON OFF)
set(DFLOW_DEBUG_KERNEL_OPTIMIZATION "-O2" CACHE STRING "Optimisation of the other kernels in debug builds")
set(DFLOW_DEBUG_LIBRARY_OPTIMIZATION "" CACHE STRING "Optimisation of the rest of the library in debug builds")
# What GCC's -O3 adds to these makes half as much code again, which is no faster. A loop's last numbers are taken one by one:
# the narrower vectors that the compiler has for them would be a fourth of all code.
set(dflow_vectorized -O2)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND dflow_vectorized -ftree-vectorize -fvect-cost-model=dynamic --param=vect-epilogues-nomask=0)
endif()
set(DFLOW_VARIANT_OPTIMIZATION "${dflow_vectorized}" CACHE STRING "Optimisation of the kernels that exist in several variants")
set(DFLOW_BATCH_COST 17 CACHE STRING "Seconds that a batch of the library's units takes beyond the headers, by the figures of DflowUnits.cmake")
set(DFLOW_UNITY_SOURCES 8 CACHE STRING "Test sources compiled as one unit; 0: each alone, and so is each unit of the library")

if(PROJECT_IS_TOP_LEVEL)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
  endif()
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  add_compile_options(-Wall -Wextra)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC throws garbage away each time when its heap has grown by 128 MB; a unit of tests takes an eighth less time where it
    # waits for the first gigabyte.
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=1000000>)
  endif()

  find_program(DFLOW_CCACHE ccache)
  foreach(language IN ITEMS CXX CUDA)
    if(DFLOW_CCACHE AND NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER)
      # Precompiled headers are cached only with these relaxations. The other variables let one cache serve all
      # checkouts. Builds inside another project do not pass --param=ggc-*, which changes no object, and hit the cache too.
      set(CMAKE_${language}_COMPILER_LAUNCHER
          ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
          "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1 "CCACHE_IGNOREOPTIONS=--param=ggc-*" ${DFLOW_CCACHE})
    endif()
  endforeach()

  # Debug builds link some fifty programs, which takes LLVM's linker a fraction of the other's time.
  include(CheckLinkerFlag)
  check_linker_flag(CXX -fuse-ld=lld DFLOW_COMPILER_KNOWS_LLD)
  if(DFLOW_COMPILER_KNOWS_LLD)
    add_link_options($<$<AND:$<CONFIG:Debug>,$<LINK_LANGUAGE:CXX>>:-fuse-ld=lld>)
  endif()
endif()

if(DFLOW_LIBFUZZER STREQUAL "AUTO")
  set(DFLOW_LIBFUZZER OFF)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    set(DFLOW_LIBFUZZER ON)
  endif()
endif()
if(DFLOW_LIBFUZZER)
  # libFuzzer sees the library by it, so tests are compiled without it; all programs link it.
  set(dflow_coverage_options -fsanitize=fuzzer-no-link)
  add_link_options(-fsanitize=fuzzer-no-link)
endif()

if(DFLOW_SANITIZE)
  add_compile_options(-fsanitize=${DFLOW_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${DFLOW_SANITIZE})
  if(DFLOW_SANITIZE MATCHES "undefined")
    # AddressSanitizer sees what is outside of an object; these two would be a third of the time to compile.
    add_compile_options(-fno-sanitize-recover=all -fno-sanitize=object-size,vptr)
  endif()
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # What the loops ask of the optimiser is asked of full optimisation alone.
    add_compile_options(-Wno-pass-failed)
    if(DFLOW_SANITIZE STREQUAL "thread")
      # The static runtime's operator new cannot be replaced, as some tests do.
      execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -print-runtime-dir OUTPUT_VARIABLE runtime_dir
                                                                                OUTPUT_STRIP_TRAILING_WHITESPACE)
      add_link_options(-shared-libsan "-Wl,-rpath,${runtime_dir}")
    endif()
  endif()
endif()
