# Finds cuDNN, NVIDIA's library for neural networks, of version 9 or later (libcudnn.so.9): CuDNN_FOUND, CuDNN_VERSION and the target
# CuDNN::cudnn. It is looked for beside the CUDA toolkit, too.

include(FindPackageHandleStandardArgs)

set(cudnn_roots ${CUDAToolkit_INCLUDE_DIRS} ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_LIBRARY_ROOT} ${CUDAToolkit_TARGET_DIR})
find_path(CuDNN_INCLUDE_DIR cudnn.h HINTS ${cudnn_roots} PATH_SUFFIXES include)
find_library(CuDNN_LIBRARY NAMES cudnn libcudnn.so.9 HINTS ${cudnn_roots} PATH_SUFFIXES lib64 lib lib/x64)
mark_as_advanced(CuDNN_INCLUDE_DIR CuDNN_LIBRARY)
set(CuDNN_VERSION "")
if(CuDNN_INCLUDE_DIR AND EXISTS "${CuDNN_INCLUDE_DIR}/cudnn_version.h")
  file(STRINGS "${CuDNN_INCLUDE_DIR}/cudnn_version.h" cudnn_lines REGEX "^#define CUDNN_(MAJOR|MINOR|PATCHLEVEL) [0-9]+")
  string(REGEX MATCHALL "[0-9]+" cudnn_numbers "${cudnn_lines}")
  list(JOIN cudnn_numbers "." CuDNN_VERSION)
endif()

find_package_handle_standard_args(CuDNN REQUIRED_VARS CuDNN_LIBRARY CuDNN_INCLUDE_DIR VERSION_VAR CuDNN_VERSION)

if(CuDNN_FOUND AND NOT TARGET CuDNN::cudnn)
  add_library(CuDNN::cudnn UNKNOWN IMPORTED)
  set_target_properties(CuDNN::cudnn PROPERTIES IMPORTED_LOCATION "${CuDNN_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${CuDNN_INCLUDE_DIR}")
endif()
