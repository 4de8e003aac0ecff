# Finds Asio without Boost, which is headers alone: asio_FOUND, asio_VERSION and the target asio::asio. A package of
# Asio's own, as package managers make it, goes first.

include(FindPackageHandleStandardArgs)
find_package(asio CONFIG QUIET)
if(asio_FOUND AND TARGET asio::asio)
  find_package_handle_standard_args(asio CONFIG_MODE)
  return()
endif()

find_path(asio_INCLUDE_DIR asio/version.hpp)
mark_as_advanced(asio_INCLUDE_DIR)
set(asio_VERSION "")
if(asio_INCLUDE_DIR)
  # 101802 is 1.18.2.
  file(STRINGS "${asio_INCLUDE_DIR}/asio/version.hpp" asio_line REGEX "^#define ASIO_VERSION ")
  string(REGEX MATCH "[0-9]+" asio_number "${asio_line}")
  math(EXPR asio_major "${asio_number} / 100000")
  math(EXPR asio_minor "${asio_number} / 100 % 1000")
  math(EXPR asio_patch "${asio_number} % 100")
  set(asio_VERSION "${asio_major}.${asio_minor}.${asio_patch}")
endif()

find_package_handle_standard_args(asio REQUIRED_VARS asio_INCLUDE_DIR VERSION_VAR asio_VERSION)

if(asio_FOUND AND NOT TARGET asio::asio)
  add_library(asio::asio INTERFACE IMPORTED)
  set_target_properties(asio::asio PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${asio_INCLUDE_DIR}")
endif()
