// Reads bytes as an Example and as a SequenceExample. Each must be the same after it was written and read again. Its
// features give a specification, and the tensors of that specification must hold as many values.
#include <dflow/base/status.hpp>
#include <dflow/io/records/example.hpp>
#include <dflow/io/records/example_parser.hpp>

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

template <class Read>
auto outcome(Read read) -> std::optional<decltype(read())> {
  try {
    return read();
  } catch (const dflow::Error& error) {
    require(error.code() == dflow::Code::data_loss);
    return std::nullopt;
  }
}

std::size_t count(const dflow::Feature& feature) {
  if (feature.dtype() == dflow::DType::string) return feature.texts().size();
  if (feature.dtype() == dflow::DType::float32) return feature.floats().size();
  return feature.dtype() == dflow::DType::int64 ? feature.integers().size() : 0;
}

dflow::FeaturesSpec spec_of(const dflow::FeatureMap& features) {
  dflow::FeaturesSpec spec;
  for (const auto& [name, feature] : features) {
    if (feature.dtype() == dflow::DType::invalid) continue;
    spec.sparse.push_back({name, feature.dtype()});
    spec.dense.push_back({name, feature.dtype(), {dflow::dynamic}, {}});
  }
  return spec;
}

void require_same(const dflow::FeaturesSpec& spec, const dflow::ParsedFeatures& parsed,
                  const dflow::FeatureMap& features) {
  for (std::size_t i = 0; i < spec.sparse.size(); ++i) {
    const auto values = static_cast<std::int64_t>(count(features.at(spec.sparse[i].name)));
    require(parsed.sparse[i].values.num_elements() == values);
    require(parsed.dense[i].num_elements() == values);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  if (const auto example = outcome([&] { return dflow::parse_example(bytes); })) {
    require(dflow::parse_example(dflow::serialize(*example)) == *example);
    const dflow::FeaturesSpec spec = spec_of(example->features);
    require_same(spec, dflow::parse_examples(std::span(&bytes, 1), spec), example->features);
  }
  if (const auto example = outcome([&] { return dflow::parse_sequence_example(bytes); })) {
    require(dflow::parse_sequence_example(dflow::serialize(*example)) == *example);
    dflow::FeatureListsSpec lists;
    for (const auto& [name, features] : example->feature_lists) {
      const dflow::DType dtype = features.empty() ? dflow::DType::int64 : features.front().dtype();
      if (dtype != dflow::DType::invalid) lists.sparse.push_back({name, dtype});
    }
    try {
      const auto parsed = dflow::parse_single_sequence_example(bytes, spec_of(example->context), lists);
      require_same(spec_of(example->context), parsed.context, example->context);
    } catch (const dflow::Error& error) {
      require(error.code() == dflow::Code::invalid_argument);  // steps of different types
    }
  }
  return 0;
}
