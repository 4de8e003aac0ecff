# dflow::image, images in JPEG and PNG files: built when libjpeg and libpng are there.

set(DFLOW_HAS_IMAGE FALSE)
if(NOT DFLOW_COMPILED OR NOT DFLOW_WITH_IMAGE)
  return()
endif()
dflow_find_component(IMAGE JPEG)
if(DFLOW_HAS_IMAGE)
  dflow_find_component(IMAGE PNG 1.6)
endif()
if(NOT DFLOW_HAS_IMAGE)
  return()
endif()

# The unit uses what public headers declare, as a user's program does: a shared dflow::dflow exports no more.
set(dflow_image_unit "${PROJECT_BINARY_DIR}/units/image_codec.cpp")
file(CONFIGURE OUTPUT "${dflow_image_unit}" CONTENT "#include <dflow/src/units/image/codec.hpp>\n" @ONLY)
add_library(dflow_image "${dflow_image_unit}")
add_library(dflow::image ALIAS dflow_image)
set_target_properties(
  dflow_image
  PROPERTIES EXPORT_NAME image
             VERSION ${PROJECT_VERSION}
             SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
             POSITION_INDEPENDENT_CODE ON)
target_link_libraries(dflow_image PUBLIC dflow PRIVATE JPEG::JPEG PNG::PNG)
target_compile_options(dflow_image PRIVATE -ffunction-sections -fdata-sections ${dflow_coverage_options})
