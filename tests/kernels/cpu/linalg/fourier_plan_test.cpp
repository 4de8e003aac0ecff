#include <dflow/kernels/cpu/linalg/fourier_plan.hpp>

#include "catch.hpp"

#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace dflow::cpu {
namespace {

TEST_CASE("idle plans of Fourier transforms are bounded in bytes and go with the device's cache", "[fourier]") {
  KernelCache cache;
  std::weak_ptr<FourierPlans<double>> kept;
  {
    const auto plans = find_fourier_plans<double>(&cache);
    kept = plans;
    CHECK(find_fourier_plans<double>(&cache) == plans);
    // Plans of prime lengths: 1.4 MB each.
    for (const std::int64_t length : {10007, 10009, 10037, 10039}) plans->give_back(plans->take(length, false));
    CHECK(plans->idle_bytes() > 4 * 10000 * sizeof(std::complex<double>));
    const FourierPlan<double>* used = nullptr;
    {
      auto plan = plans->take(10037, false);
      used = plan.get();
      plans->give_back(std::move(plan));
    }
    CHECK(plans->take(10037, false).get() == used);
  }
  CHECK(!kept.expired());
  cache.clear();
  CHECK(kept.expired());
}

TEST_CASE("plans of Fourier transforms above the bound are not kept, and those not used for longest go", "[fourier]") {
  constexpr std::size_t line = 1024 * sizeof(std::complex<float>);
  FourierPlans<float> plans(4 * line);
  plans.give_back(plans.take(1 << 20, false));
  CHECK(plans.idle_bytes() == 0);
  for (std::int64_t length = 1024; length < 1034; ++length) {
    plans.give_back(std::make_unique<FourierPlan<float>>(length, false));
    CHECK(plans.idle_bytes() <= 4 * line);
  }
}

}  // namespace
}  // namespace dflow::cpu
