#pragma once

/// Public: the mark of what a shared library of dflow exports.

/// Exports a class or function from the shared library, whatever visibility its unit has. Declarations in public
/// headers are exported without this mark (cmake/DflowExports.cmake). A template needs the mark if only the library
/// instantiates the template.
#define DFLOW_API __attribute__((visibility("default")))
