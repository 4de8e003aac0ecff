# Finds cereal, which is headers alone: cereal_FOUND and the target cereal::cereal. A package of cereal's own goes first. Debian's
# lies in a folder of the architecture that it is installed on, where a cross build does not look.

include(FindPackageHandleStandardArgs)
find_package(cereal CONFIG QUIET)
if(cereal_FOUND AND TARGET cereal::cereal)
  find_package_handle_standard_args(cereal CONFIG_MODE)
  return()
endif()

find_path(cereal_INCLUDE_DIR cereal/cereal.hpp)
mark_as_advanced(cereal_INCLUDE_DIR)
find_package_handle_standard_args(cereal REQUIRED_VARS cereal_INCLUDE_DIR)

if(cereal_FOUND AND NOT TARGET cereal::cereal)
  add_library(cereal::cereal INTERFACE IMPORTED)
  set_target_properties(cereal::cereal PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${cereal_INCLUDE_DIR}")
endif()
