#pragma once

/// Internal: what the linker says of a program that holds two copies of dflow.

namespace dflow::detail {

/// Defined with the core's bodies and never called. Two units that include `<dflow/src.hpp>` define it twice.
void two_copies_of_dflow_include_src_hpp_in_one_unit_and_link_no_static_dflow();

#if defined(DFLOW_IN_LIBRARY)
/// Defined in the library's unit of the core's base. All units of the library refer to it: a static library of which
/// any unit comes into a program brings the name above, too.
void core_of_the_library();

[[gnu::used]] static void (*const needs_core_of_the_library)() = core_of_the_library;
#endif

}  // namespace dflow::detail
