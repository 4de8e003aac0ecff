#pragma once

#include <string>

namespace dflow::testing {

/// The checkout that the program was built from, for files that a test reads or runs. It has a unit of its own
/// (source_folder.cpp), the only one that names the place: a compiler cache serves all others in another checkout too,
/// and what `__FILE__` says there need not be a path from where the program runs.
const std::string& source_folder();

}  // namespace dflow::testing
