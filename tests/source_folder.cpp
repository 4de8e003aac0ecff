#include "support/source_folder.hpp"

namespace dflow::testing {

const std::string& source_folder() {
  static const std::string folder = DFLOW_TEST_SOURCE_FOLDER;
  return folder;
}

}  // namespace dflow::testing
