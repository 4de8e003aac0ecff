// expect: static.assert.*a batch has one tensor for each feed of the step, of its element type
#include <dflow/data/from.hpp>
#include <dflow/train/fitting/fit.hpp>

int main() {
  const auto data = dflow::data::from_tensors(dflow::Tensor<double>({4, 2})).batch(2);
  const auto fit = [&](dflow::Session& session, const dflow::train::TrainStep<float>& step) {
    return dflow::train::fit(session, step, data);  // batches of double to a feed of float
  };
  static_cast<void>(fit);
}
