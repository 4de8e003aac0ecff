# dflow::dflow, the compiled library, and dflow::src, for a program that compiles dflow itself (<dflow/src.hpp>).

include(GNUInstallDirs)

function(dflow_public_usage target scope)
  target_compile_features(${target} ${scope} cxx_std_20)
  target_include_directories(
    ${target} ${scope} "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>"
    "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
  target_link_libraries(${target} ${scope} Threads::Threads)
endfunction()

# ---- compiled by the program ---------------------------------------------------------------------------------------
add_library(dflow_src INTERFACE)
add_library(dflow::src ALIAS dflow_src)
add_library(dflow::header_only ALIAS dflow_src) # the old name, for one minor version
set_target_properties(dflow_src PROPERTIES EXPORT_NAME src)
dflow_public_usage(dflow_src INTERFACE)
target_link_libraries(dflow_src INTERFACE Eigen3::Eigen cereal::cereal asio::asio)
target_compile_definitions(dflow_src INTERFACE ASIO_STANDALONE ASIO_NO_DEPRECATED)
if(DFLOW_HAS_ONEDNN)
  target_compile_definitions(dflow_src INTERFACE DFLOW_HAS_ONEDNN=1)
  target_link_libraries(dflow_src INTERFACE DNNL::dnnl)
endif()
if(DFLOW_HAS_ZLIB)
  target_compile_definitions(dflow_src INTERFACE DFLOW_HAS_ZLIB=1)
  target_link_libraries(dflow_src INTERFACE ZLIB::ZLIB)
endif()
if(DFLOW_HAS_OPENSSL)
  target_compile_definitions(dflow_src INTERFACE DFLOW_HAS_OPENSSL=1)
  target_link_libraries(dflow_src INTERFACE OpenSSL::SSL)
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
if(DFLOW_HAS_OPENSSL)
  target_compile_definitions(dflow_sources_usage INTERFACE DFLOW_HAS_OPENSSL=1)
  target_link_libraries(dflow_sources_usage INTERFACE OpenSSL::SSL)
endif()

if(DFLOW_COMPILED)
  include(DflowUnits)
  # Kernels have an optimisation of their own in debug builds.
  dflow_units(kernel_sources kernels routines linalg tables)
  dflow_units(dflow_sources core ops io data trace train net)
  add_library(dflow_kernels OBJECT ${kernel_sources})
  set_target_properties(dflow_kernels PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(dflow_kernels PRIVATE dflow_sources_usage)
  target_compile_options(dflow_kernels PRIVATE ${dflow_coverage_options})
  add_library(dflow ${dflow_sources} $<TARGET_OBJECTS:dflow_kernels>)
  add_library(dflow::dflow ALIAS dflow)
  set_target_properties(
    dflow PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
                     POSITION_INDEPENDENT_CODE ON DEFINE_SYMBOL "")
  # The library's own instances of Eigen's templates: a program that uses Eigen with other compiler flags would otherwise
  # share them, laid out for other registers. Their arithmetic is not ours to watch.
  set(eigen_sources ${kernel_sources})
  list(FILTER eigen_sources INCLUDE REGEX "/units/linalg_")
  set_source_files_properties(${eigen_sources} PROPERTIES COMPILE_DEFINITIONS Eigen=dflow_eigen)
  if(DFLOW_SANITIZE MATCHES "undefined")
    set_source_files_properties(${eigen_sources} PROPERTIES COMPILE_OPTIONS -fno-sanitize=undefined)
  endif()
  dflow_public_usage(dflow PUBLIC)
  target_compile_options(dflow PRIVATE ${dflow_coverage_options})
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
