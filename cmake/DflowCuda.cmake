# dflow::cuda, the kernels for NVIDIA GPUs: built when nvcc is there and src/kernels/cuda/ has files.

set(DFLOW_HAS_CUDA FALSE)
set(DFLOW_HAS_CUDNN FALSE)
set(DFLOW_HAS_NVRTC FALSE)
set(DFLOW_HAS_NCCL FALSE)
if(NOT DFLOW_COMPILED OR NOT DFLOW_WITH_CUDA)
  return()
endif()

# An nvcc that does not work with this compiler is as good as none, unless it is insisted on.
if(NOT CMAKE_CUDA_COMPILER)
  find_program(DFLOW_NVCC nvcc PATHS /usr/local/cuda/bin)
  mark_as_advanced(DFLOW_NVCC)
  if(DFLOW_NVCC AND NOT DEFINED ENV{CUDACXX})
    set(ENV{CUDACXX} "${DFLOW_NVCC}")
  endif()
  include(CheckLanguage)
  check_language(CUDA)
endif()
if(NOT CMAKE_CUDA_COMPILER)
  if(DFLOW_WITH_CUDA STREQUAL "ON")
    message(FATAL_ERROR "DFLOW_WITH_CUDA=ON and no nvcc was found that works; set CMAKE_CUDA_COMPILER")
  endif()
  return()
endif()

file(GLOB_RECURSE dflow_cuda_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/kernels/cuda/*.cu"
     "${PROJECT_SOURCE_DIR}/src/kernels/cuda/*.cpp" "${PROJECT_SOURCE_DIR}/src/runtime/cuda_*.cpp")
if(NOT dflow_cuda_sources)
  return()
endif()

if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  # Machine code for these, and PTX that later ones compile when a program starts.
  set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 86-real 89-real 90-real 100)
endif()
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)

add_library(dflow_cuda ${dflow_cuda_sources})
add_library(dflow::cuda ALIAS dflow_cuda)
set_target_properties(
  dflow_cuda
  PROPERTIES EXPORT_NAME cuda
             VERSION ${PROJECT_VERSION}
             SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
             POSITION_INDEPENDENT_CODE ON)
target_link_libraries(dflow_cuda PUBLIC dflow CUDA::cudart PRIVATE CUDA::cublas CUDA::cublasLt CUDA::cufft CUDA::cusolver)
dflow_find_component(CUDNN CuDNN 9.8)
if(DFLOW_HAS_CUDNN)
  target_link_libraries(dflow_cuda PRIVATE CuDNN::cudnn)
  target_compile_definitions(dflow_cuda PRIVATE DFLOW_HAS_CUDNN=1)
endif()
# What makes kernels at run time: NVRTC, which is loaded where the program runs, and a runtime that loads code.
if(DFLOW_WITH_NVRTC)
  if(TARGET CUDA::nvrtc AND CUDAToolkit_VERSION VERSION_GREATER_EQUAL 12.8)
    set(DFLOW_HAS_NVRTC TRUE)
    target_compile_definitions(dflow_cuda PRIVATE DFLOW_HAS_NVRTC=1)
    target_link_libraries(dflow_cuda PRIVATE ${CMAKE_DL_LIBS})
  elseif(DFLOW_WITH_NVRTC STREQUAL "ON")
    message(FATAL_ERROR "DFLOW_WITH_NVRTC=ON and no NVRTC of CUDA 12.8 or later was found")
  endif()
endif()
# What computes between GPUs: NCCL, whose header is all that it is built with; it is loaded where the program runs.
if(DFLOW_WITH_NCCL)
  find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ${CUDAToolkit_LIBRARY_ROOT} ${CUDAToolkit_TARGET_DIR}
            PATH_SUFFIXES include)
  mark_as_advanced(NCCL_INCLUDE_DIR)
  if(NCCL_INCLUDE_DIR)
    file(STRINGS "${NCCL_INCLUDE_DIR}/nccl.h" nccl_major REGEX "^#define NCCL_MAJOR 2$")
  endif()
  if(nccl_major)
    set(DFLOW_HAS_NCCL TRUE)
    set_property(SOURCE "${PROJECT_SOURCE_DIR}/src/kernels/cuda/device/nccl_collectives.cpp" APPEND
                 PROPERTY INCLUDE_DIRECTORIES "${NCCL_INCLUDE_DIR}")
    target_compile_definitions(dflow_cuda PRIVATE DFLOW_HAS_NCCL=1)
    target_link_libraries(dflow_cuda PRIVATE ${CMAKE_DL_LIBS})
  elseif(DFLOW_WITH_NCCL STREQUAL "ON")
    message(FATAL_ERROR "DFLOW_WITH_NCCL=ON and no header nccl.h of NCCL 2 was found")
  endif()
endif()
target_include_directories(dflow_cuda PRIVATE $<BUILD_INTERFACE:${CUDAToolkit_INCLUDE_DIRS}>)
# CMake 3.25 does not know how to ask nvcc 13 for C++20. nvcc does not know that an assignment's value may be left.
target_compile_options(dflow_cuda PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:-std=c++20;--expt-relaxed-constexpr;-diag-suppress=2810>")
# No product is fused with a sum in unfused/: what elementwise kernels compute has one rounding for each operation, as on
# the host, alone and in chains. What updates variables has it alone and joined.
set(dflow_unfused_sources ${dflow_cuda_sources})
list(FILTER dflow_unfused_sources INCLUDE REGEX "/cuda/unfused/")
set_source_files_properties(${dflow_unfused_sources} PROPERTIES COMPILE_OPTIONS -fmad=false)
set(DFLOW_HAS_CUDA TRUE)
