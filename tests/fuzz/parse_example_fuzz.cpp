// Reads bytes as an Example and a SequenceExample by a fixed specification of every kind of feature. A batch holds the
// same example twice; both rows must be equal to the result of the example by itself.
#include <dflow/base/status.hpp>
#include <dflow/io/records/example_parser.hpp>

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

namespace {

using dflow::DType;
using dflow::Tensor;

void require(bool condition) {
  if (!condition) std::abort();
}

template <class Read>
auto outcome(Read read) -> std::optional<decltype(read())> {
  try {
    return read();
  } catch (const dflow::Error& error) {
    require(error.code() == dflow::Code::data_loss || error.code() == dflow::Code::invalid_argument);
    return std::nullopt;
  }
}

const dflow::FeaturesSpec& specification() {
  static const dflow::FeaturesSpec spec{.dense = {{"a", DType::float32, {2}, Tensor<float>(0.5f)},
                                                  {"b", DType::int64, {}, Tensor<std::int64_t>(7)},
                                                  {"c", DType::string, {dflow::dynamic}, {}},
                                                  {"d", DType::int64, {dflow::dynamic, 2}, Tensor<std::int64_t>(-1)}},
                                        .sparse = {{"a", DType::float32}, {"b", DType::int64}, {"c", DType::string}}};
  return spec;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const std::vector<std::string> twice{bytes, bytes};
  const auto one = outcome([&] { return dflow::parse_single_example(bytes, specification()); });
  const auto two = outcome([&] { return dflow::parse_examples(twice, specification()); });
  require(one.has_value() == two.has_value());
  if (one) {
    for (std::size_t i = 0; i < one->dense.size(); ++i) {
      for (int row = 0; row < 2; ++row) {
        require(bitwise_equal(two->dense[i].slice(row, row + 1).reshaped(one->dense[i].shape()), one->dense[i]));
      }
    }
    for (std::size_t i = 0; i < one->sparse.size(); ++i) {
      const std::int64_t values = one->sparse[i].values.num_elements();
      require(two->sparse[i].values.num_elements() == 2 * values);
      require(bitwise_equal(two->sparse[i].values.slice(values, 2 * values), one->sparse[i].values));
    }
  }
  const dflow::FeatureListsSpec lists{.dense = {{"frames", DType::float32, {2}, true}, {"ids", DType::int64, {}, true}},
                                      .sparse = {{"words", DType::string}}};
  if (const auto sequence =
          outcome([&] { return dflow::parse_single_sequence_example(bytes, specification(), lists); })) {
    require(sequence->lists.dense[0].num_elements() == 2 * sequence->lists.dense[0].dim(0));
    require(sequence->lists.sparse[0].indices.dim(0) == sequence->lists.sparse[0].values.num_elements());
  }
  return 0;
}
