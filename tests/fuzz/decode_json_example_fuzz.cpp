// Reads bytes as an Example in JSON. An Example must be the same after it was written as bytes and read again.
#include <dflow/base/status.hpp>
#include <dflow/io/records/example.hpp>
#include <dflow/io/records/example_json.hpp>

#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const dflow::Example example =
        dflow::example_from_json(std::string_view(reinterpret_cast<const char*>(data), size));
    if (!(dflow::parse_example(dflow::serialize(example)) == example)) std::abort();
  } catch (const dflow::Error& error) {
    if (error.code() != dflow::Code::invalid_argument) std::abort();
  }
  return 0;
}
