# An overlay port: it takes the sources of the tree that it lies in, so
#   vcpkg install dflow --overlay-ports=<tree>/ports
# installs exactly that tree.
get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../.." ABSOLUTE)

vcpkg_check_features(
    OUT_FEATURE_OPTIONS FEATURE_OPTIONS
    FEATURES
        image  DFLOW_WITH_IMAGE
        onednn DFLOW_WITH_ONEDNN
        tls    DFLOW_WITH_OPENSSL
        zlib   DFLOW_WITH_ZLIB
)

vcpkg_cmake_configure(
    SOURCE_PATH "${SOURCE_PATH}"
    OPTIONS
        ${FEATURE_OPTIONS}
        -DDFLOW_WITH_CUDA=OFF
        -DDFLOW_TESTS=OFF
        -DDFLOW_EXAMPLES=OFF
        -DDFLOW_TOOLS=OFF
)

vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME dflow CONFIG_PATH lib/cmake/dflow)
vcpkg_fixup_pkgconfig()

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
