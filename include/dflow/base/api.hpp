#pragma once

/// Public: the mark of classes and functions that a shared library of dflow exports.

/// Exports a class or function from the shared library, even if its translation unit hides symbols. Declarations in
/// public headers are exported without this mark (cmake/DflowExports.cmake). A template needs the mark if only the
/// library instantiates the template.
#define DFLOW_API __attribute__((visibility("default")))
