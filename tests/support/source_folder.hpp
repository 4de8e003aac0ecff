#pragma once

#include <string>

namespace dflow::testing {

/// The checkout that the program was built from, for files that a test reads or runs. It has a unit of its own
/// (source_folder.cpp), the only unit that names the place. A compiler cache serves all other units in another checkout
/// too, and their `__FILE__` need not be a path from the folder where the program runs.
const std::string& source_folder();

}  // namespace dflow::testing
