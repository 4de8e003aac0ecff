#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dflow::detail {

/// Throws NotFound for a tensor that is not among `names`; the message lists the first of the names.
[[noreturn]] void reject_missing_tensor(std::string_view what, std::string_view name,
                                        const std::vector<std::string>& names);

}  // namespace dflow::detail
