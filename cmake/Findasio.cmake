# Finds the stand-alone, header-only Asio.
#
# Targets: asio::asio    Variables: asio_FOUND, asio_INCLUDE_DIR, asio_VERSION

find_path(asio_INCLUDE_DIR NAMES asio/version.hpp)
mark_as_advanced(asio_INCLUDE_DIR)

set(asio_VERSION "")
if(asio_INCLUDE_DIR)
  # ASIO_VERSION is major * 100000 + minor * 100 + patch.
  file(STRINGS "${asio_INCLUDE_DIR}/asio/version.hpp" asio_version_line REGEX "#define ASIO_VERSION [0-9]+")
  string(REGEX MATCH "[0-9]+" asio_version_number "${asio_version_line}")
  if(asio_version_number)
    math(EXPR asio_version_major "${asio_version_number} / 100000")
    math(EXPR asio_version_minor "${asio_version_number} / 100 % 1000")
    math(EXPR asio_version_patch "${asio_version_number} % 100")
    set(asio_VERSION "${asio_version_major}.${asio_version_minor}.${asio_version_patch}")
  endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(asio REQUIRED_VARS asio_INCLUDE_DIR VERSION_VAR asio_VERSION)

if(asio_FOUND AND NOT TARGET asio::asio)
  find_package(Threads REQUIRED)
  add_library(asio::asio INTERFACE IMPORTED)
  set_target_properties(
    asio::asio
    PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${asio_INCLUDE_DIR}" INTERFACE_COMPILE_DEFINITIONS "ASIO_STANDALONE"
               INTERFACE_LINK_LIBRARIES Threads::Threads)
endif()
