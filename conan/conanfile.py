"""Conan 2 recipe.

`conan create conan --build=missing` takes the dependencies from ConanCenter;
`conan create conan -o "dflow/*:system_dependencies=True"` takes those that the machine has installed, and needs no remote.
"""

import os
import re

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load

required_conan_version = ">=2.0"


class DflowRecipe(ConanFile):
    name = "dflow"
    description = "Typed dataflow graphs in C++20"
    license = "Apache-2.0"
    topics = ("dataflow", "machine-learning", "autodiff")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {
        "shared": [True, False],
        "with_onednn": [True, False],
        "with_zlib": [True, False],
        "with_openssl": [True, False],
        "with_image": [True, False],
        "system_dependencies": [True, False],
    }
    default_options = {
        "shared": False,
        "with_onednn": False,
        "with_zlib": True,
        "with_openssl": True,
        "with_image": False,
        "system_dependencies": False,
    }

    @property
    def _root(self):
        return os.path.dirname(self.recipe_folder)

    def set_version(self):
        cmake = load(self, os.path.join(self._root, "CMakeLists.txt"))
        self.version = re.search(r"project\(dflow VERSION ([0-9.]+)", cmake).group(1)

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "LICENSE", "NOTICE", "cmake/*", "docs/*.md", "include/*", "src/*"):
            copy(self, pattern, src=self._root, dst=self.export_sources_folder)

    def requirements(self):
        if self.options.system_dependencies:
            return
        self.requires("eigen/3.4.0", transitive_headers=True)
        self.requires("cereal/1.3.2", transitive_headers=True)
        self.requires("asio/[>=1.18 <1.31]", transitive_headers=True)
        if self.options.with_zlib:
            self.requires("zlib/[>=1.2.11 <2]")
        if self.options.with_openssl:
            self.requires("openssl/[>=1.1.1 <4]", transitive_headers=True)
        if self.options.with_image:
            self.requires("libjpeg-turbo/[>=2.1 <4]")
            self.requires("libpng/[>=1.6 <2]")
        if self.options.with_onednn:
            self.requires("onednn/[>=2.6 <4]")

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["DFLOW_TESTS"] = False
        toolchain.cache_variables["DFLOW_EXAMPLES"] = False
        toolchain.cache_variables["DFLOW_TOOLS"] = False
        toolchain.cache_variables["DFLOW_WITH_CUDA"] = "OFF"
        toolchain.cache_variables["DFLOW_WITH_ONEDNN"] = "ON" if self.options.with_onednn else "OFF"
        toolchain.cache_variables["DFLOW_WITH_ZLIB"] = "ON" if self.options.with_zlib else "OFF"
        toolchain.cache_variables["DFLOW_WITH_OPENSSL"] = "ON" if self.options.with_openssl else "OFF"
        toolchain.cache_variables["DFLOW_WITH_IMAGE"] = "ON" if self.options.with_image else "OFF"
        toolchain.generate()
        deps = CMakeDeps(self)
        deps.set_property("onednn", "cmake_file_name", "dnnl")
        deps.set_property("onednn", "cmake_target_name", "DNNL::dnnl")
        deps.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()

    def package_info(self):
        # The package's own CMake files carry its targets: dflow::dflow, dflow::src and dflow::image.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["lib/cmake/dflow"]
        self.cpp_info.libs = ["dflow_image", "dflow"] if self.options.with_image else ["dflow"]
        if not self.options.shared:
            self.cpp_info.system_libs = ["pthread", "m"]
            if self.options.system_dependencies:
                self.cpp_info.system_libs += ["jpeg", "png", "z"] if self.options.with_image else []
                self.cpp_info.system_libs += ["z"] if self.options.with_zlib else []
                self.cpp_info.system_libs += ["ssl", "crypto"] if self.options.with_openssl else []
                self.cpp_info.system_libs += ["dnnl"] if self.options.with_onednn else []
