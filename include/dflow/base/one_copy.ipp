#pragma once

#include <dflow/base/one_copy.hpp>

namespace dflow::detail {

void two_copies_of_dflow_include_src_hpp_in_one_unit_and_link_no_static_dflow() {}

#if defined(DFLOW_IN_LIBRARY)
void core_of_the_library() {}
#endif

}  // namespace dflow::detail
