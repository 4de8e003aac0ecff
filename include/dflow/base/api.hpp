#pragma once

/// Public: the mark of what a shared library of dflow exports.

/// Stands before a class or function that a program finds in the shared library, whatever visibility the unit has that
/// declares it. What public headers declare is exported without it (cmake/DflowExports.cmake), except templates whose
/// instances only the library makes: those need it.
#define DFLOW_API __attribute__((visibility("default")))
