# dflow::dflow, the bodies compiled once, and dflow::header_only, the same code inline.

include(GNUInstallDirs)

function(dflow_public_usage target scope)
  target_compile_features(${target} ${scope} cxx_std_20)
  target_include_directories(
    ${target} ${scope} "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>"
    "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
  target_link_libraries(${target} ${scope} Threads::Threads)
endfunction()

# ---- header-only -------------------------------------------------------------------------------------------------
add_library(dflow_header_only INTERFACE)
add_library(dflow::header_only ALIAS dflow_header_only)
set_target_properties(dflow_header_only PROPERTIES EXPORT_NAME header_only)
dflow_public_usage(dflow_header_only INTERFACE)
target_compile_definitions(dflow_header_only INTERFACE DFLOW_HEADER_ONLY)
target_link_libraries(dflow_header_only INTERFACE Eigen3::Eigen cereal::cereal asio::asio)
target_compile_definitions(dflow_header_only INTERFACE ASIO_STANDALONE ASIO_NO_DEPRECATED)
if(DFLOW_HAS_ONEDNN)
  target_compile_definitions(dflow_header_only INTERFACE DFLOW_HAS_ONEDNN=1)
  target_link_libraries(dflow_header_only INTERFACE DNNL::dnnl)
endif()
if(DFLOW_HAS_ZLIB)
  target_compile_definitions(dflow_header_only INTERFACE DFLOW_HAS_ZLIB=1)
  target_link_libraries(dflow_header_only INTERFACE ZLIB::ZLIB)
endif()
if(DFLOW_HAS_JSON)
  target_compile_definitions(dflow_header_only INTERFACE DFLOW_HAS_JSON=1)
  target_link_libraries(dflow_header_only INTERFACE nlohmann_json::nlohmann_json)
endif()
if(DFLOW_HAS_OPENSSL)
  target_compile_definitions(dflow_header_only INTERFACE DFLOW_HAS_OPENSSL=1)
  target_link_libraries(dflow_header_only INTERFACE OpenSSL::SSL)
endif()

# ---- compiled ----------------------------------------------------------------------------------------------------
# The library's own sources see the dependencies; its users see none of them, since no public header includes one.
add_library(dflow_sources_usage INTERFACE)
dflow_public_usage(dflow_sources_usage INTERFACE)
target_link_libraries(dflow_sources_usage INTERFACE Eigen3::Eigen cereal::cereal asio::asio)
target_compile_definitions(dflow_sources_usage INTERFACE ASIO_STANDALONE ASIO_NO_DEPRECATED)
# Sections let the linker drop what a small op table never reaches.
target_compile_options(dflow_sources_usage INTERFACE -fno-math-errno -ffunction-sections -fdata-sections)
if(DFLOW_HAS_ONEDNN)
  target_compile_definitions(dflow_sources_usage INTERFACE DFLOW_HAS_ONEDNN=1)
  target_link_libraries(dflow_sources_usage INTERFACE DNNL::dnnl)
endif()
if(DFLOW_HAS_ZLIB)
  target_compile_definitions(dflow_sources_usage INTERFACE DFLOW_HAS_ZLIB=1)
  target_link_libraries(dflow_sources_usage INTERFACE ZLIB::ZLIB)
endif()
if(DFLOW_HAS_JSON)
  target_compile_definitions(dflow_sources_usage INTERFACE DFLOW_HAS_JSON=1)
  target_link_libraries(dflow_sources_usage INTERFACE nlohmann_json::nlohmann_json)
endif()
if(DFLOW_HAS_OPENSSL)
  target_compile_definitions(dflow_sources_usage INTERFACE DFLOW_HAS_OPENSSL=1)
  target_link_libraries(dflow_sources_usage INTERFACE OpenSSL::SSL)
endif()

if(DFLOW_COMPILED)
  file(GLOB_RECURSE dflow_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/*.cpp")
  list(FILTER dflow_sources EXCLUDE REGEX "/src/kernels/cpu/loops/")
  list(FILTER dflow_sources EXCLUDE REGEX "/src/(kernels/cuda/|runtime/cuda_)")

  set(kernel_sources ${dflow_sources})
  list(FILTER kernel_sources INCLUDE REGEX "/src/kernels/")
  list(FILTER dflow_sources EXCLUDE REGEX "/src/kernels/")

  # Kernels have an optimisation of their own in debug builds.
  add_library(dflow_kernels OBJECT ${kernel_sources})
  set_target_properties(dflow_kernels PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(dflow_kernels PRIVATE dflow_sources_usage)
  add_library(dflow ${dflow_sources} $<TARGET_OBJECTS:dflow_kernels>)
  add_library(dflow::dflow ALIAS dflow)
  set_target_properties(
    dflow PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
                     POSITION_INDEPENDENT_CODE ON DEFINE_SYMBOL "")
  # Most of the time of a unit goes into the headers that all share.
  if(DFLOW_UNITY_SOURCES)
    set_target_properties(dflow dflow_kernels PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${DFLOW_UNITY_SOURCES})
    # Names every kernel, so it must not see the templates that the others instantiate.
    set_source_files_properties("${PROJECT_SOURCE_DIR}/src/kernels/cpu/standard_kernels.cpp"
                                PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
  # Each takes long by itself: decompositions and solvers are templates of Eigen's, whose arithmetic is not ours to watch.
  set(eigen_sources ${kernel_sources})
  list(FILTER eigen_sources INCLUDE REGEX "/src/kernels/cpu/linalg/")
  set_source_files_properties(${eigen_sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  if(DFLOW_SANITIZE MATCHES "undefined")
    set_source_files_properties(${eigen_sources} PROPERTIES COMPILE_OPTIONS -fno-sanitize=undefined)
  endif()
  dflow_public_usage(dflow PUBLIC)
  target_link_libraries(dflow PRIVATE "$<BUILD_INTERFACE:dflow_sources_usage>")
  if(DFLOW_HAS_ONEDNN)
    target_link_libraries(dflow PRIVATE DNNL::dnnl)
  endif()
  if(DFLOW_HAS_ZLIB)
    target_link_libraries(dflow PRIVATE ZLIB::ZLIB)
  endif()
  if(DFLOW_HAS_OPENSSL)
    target_link_libraries(dflow PRIVATE OpenSSL::SSL)
  endif()

  # Kernels without optimisation make a debug build's tests take minutes; nobody steps through them by default.
  target_compile_options(dflow_kernels PRIVATE "$<$<CONFIG:Debug>:${DFLOW_DEBUG_KERNEL_OPTIMIZATION}>")
  target_compile_options(dflow PRIVATE "$<$<CONFIG:Debug>:${DFLOW_DEBUG_LIBRARY_OPTIMIZATION}>")
endif()

# What tests, examples and tools of this tree link.
if(DFLOW_COMPILED)
  set(DFLOW_LIBRARY dflow::dflow)
else()
  set(DFLOW_LIBRARY dflow::header_only)
endif()
