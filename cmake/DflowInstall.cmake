# install(): headers, libraries, the relocatable CMake package and the pkg-config file.

include(CMakePackageConfigHelpers)
set(dflow_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/dflow")

install(
  DIRECTORY "${PROJECT_SOURCE_DIR}/include/dflow"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  FILES_MATCHING
  PATTERN "*.hpp"
  PATTERN "*.ipp"
  PATTERN "public_headers.txt")

# One export set per component, so that a missing dependency of one does not break the others.
function(dflow_install_component component target)
  install(TARGETS ${target} EXPORT dflow-${component}-targets)
  install(EXPORT dflow-${component}-targets NAMESPACE dflow:: DESTINATION "${dflow_package_dir}")
endfunction()

dflow_install_component(src dflow_src)
if(DFLOW_COMPILED)
  dflow_install_component(dflow dflow)
endif()
if(DFLOW_HAS_CUDA)
  dflow_install_component(cuda dflow_cuda)
endif()
if(DFLOW_HAS_IMAGE)
  dflow_install_component(image dflow_image)
endif()

set(dflow_library_is_static FALSE)
if(DFLOW_COMPILED)
  get_target_property(dflow_library_type dflow TYPE)
  if(dflow_library_type STREQUAL "STATIC_LIBRARY")
    set(dflow_library_is_static TRUE)
  endif()
endif()

configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/dflow-config.cmake.in" "${PROJECT_BINARY_DIR}/dflow-config.cmake"
  INSTALL_DESTINATION "${dflow_package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/dflow-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/dflow-config.cmake" "${PROJECT_BINARY_DIR}/dflow-config-version.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/Findasio.cmake" "${PROJECT_SOURCE_DIR}/cmake/Findcereal.cmake" "${PROJECT_SOURCE_DIR}/cmake/FindCuDNN.cmake"
        DESTINATION "${dflow_package_dir}")
file(GLOB dflow_pages CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/docs/*.md")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/NOTICE" ${dflow_pages} DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/dflow")

# pkg-config: the prefix is found from the place of the .pc file, so a moved installation still works.
if(DFLOW_COMPILED)
  set(dflow_pc_dir "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
  file(RELATIVE_PATH dflow_pc_to_prefix "/prefix/${dflow_pc_dir}" "/prefix")
  string(REGEX REPLACE "/$" "" dflow_pc_to_prefix "${dflow_pc_to_prefix}")
  set(dflow_pc_private "-pthread")
  if(DFLOW_HAS_ONEDNN)
    string(APPEND dflow_pc_private " -ldnnl")
  endif()
  if(DFLOW_HAS_ZLIB)
    string(APPEND dflow_pc_private " -lz")
  endif()
  if(DFLOW_HAS_OPENSSL)
    string(APPEND dflow_pc_private " -lssl -lcrypto")
  endif()
  set(dflow_pc_public "")
  if(dflow_library_is_static)
    set(dflow_pc_public " ${dflow_pc_private}")
  endif()
  configure_file("${PROJECT_SOURCE_DIR}/cmake/dflow.pc.in" "${PROJECT_BINARY_DIR}/dflow.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/dflow.pc" DESTINATION "${dflow_pc_dir}")
  if(DFLOW_HAS_IMAGE)
    set(dflow_pc_image_public "")
    if(dflow_library_is_static)
      set(dflow_pc_image_public " -ljpeg -lpng -lz")
    endif()
    configure_file("${PROJECT_SOURCE_DIR}/cmake/dflow-image.pc.in" "${PROJECT_BINARY_DIR}/dflow-image.pc" @ONLY)
    install(FILES "${PROJECT_BINARY_DIR}/dflow-image.pc" DESTINATION "${dflow_pc_dir}")
  endif()
endif()
