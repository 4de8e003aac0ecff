#pragma once

/// Internal: the name by which the linker rejects a program that holds two copies of dflow.

namespace dflow::detail {

/// Defined with the core's bodies and never called. Two units that include `<dflow/src.hpp>` define it twice.
void two_copies_of_dflow_include_src_hpp_in_one_unit_and_link_no_static_dflow();

#if defined(DFLOW_IN_LIBRARY)
/// Defined in the library's unit of the core's base. All units of the library refer to it: if any unit of a static
/// library comes into a program, the name above comes too.
void core_of_the_library();

[[gnu::used]] static void (*const needs_core_of_the_library)() = core_of_the_library;
#endif

}  // namespace dflow::detail
