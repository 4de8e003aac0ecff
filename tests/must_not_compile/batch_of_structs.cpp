// expect: static.assert.*batches are made of tensors, numbers, strings, and pairs and tuples of them
#include <dflow/data/from.hpp>

struct Sample {
  float x = 0;
};

int main() {
  const auto data = dflow::data::from_vector(std::vector<Sample>(3));
  static_cast<void>(data.batch(2));
}
