#pragma once

#include <dflow/kernels/cuda/bodies/updates.hpp>

#include <cstdint>

namespace dflow::cuda {

/// Arguments to update many variables that have equally many slots and the same factors. Their elements are divided
/// into chunks. A block takes one chunk after the other, so that small variables do not wait for a large one.
template <int num_variables>
struct JointUpdateArgs {
  static constexpr std::int64_t chunk_elements = 2048;
  /// The most bytes that a kernel may have as arguments on any GPU.
  static constexpr int max_bytes = 4096;
  static constexpr int bytes_each = 8 + 4 + 8 * (num_variables + 1);
  static constexpr int max_updates = (max_bytes - 8 * (UpdateArgs::max_factors + 2)) / bytes_each;

  const void* factors[UpdateArgs::max_factors] = {};
  const ErrorSlot* errors = nullptr;  ///< as of `UpdateArgs`
  std::int64_t n[max_updates] = {};
  const void* gradients[max_updates] = {};
  void* variables[num_variables][max_updates] = {};
  std::uint32_t end_chunk[max_updates] = {};  ///< behind the last of each update
  std::uint16_t count = 0;                    ///< of updates
  bool use_nesterov = false;

  /// Precondition: there is room.
  void add(std::int64_t elements, const void* gradient, void* const* its_variables) {
    const std::uint32_t begin = num_chunks();
    n[count] = elements;
    gradients[count] = gradient;
    for (int v = 0; v < num_variables; ++v) variables[v][count] = its_variables[v];
    end_chunk[count++] = begin + static_cast<std::uint32_t>((elements + chunk_elements - 1) / chunk_elements);
  }
  DFLOW_FN std::uint32_t num_chunks() const { return count == 0 ? 0 : end_chunk[count - 1]; }
  /// The update that a chunk belongs to.
  DFLOW_FN int update_of(std::uint32_t chunk) const {
    int first = 0, last = count - 1;
    while (first < last) {
      const int middle = (first + last) / 2;
      if (chunk < end_chunk[middle]) {
        last = middle;
      } else {
        first = middle + 1;
      }
    }
    return first;
  }
};

/// Updates all elements of many variables, each as `DenseUpdateBody` does.
template <class Update, class T>
struct JointUpdateBody {
  static constexpr const char* name = Update::joint_name;
  static constexpr bool has_barriers = false;
  using Args = JointUpdateArgs<Update::num_variables>;
  static_assert(sizeof(Args) <= Args::max_bytes);

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    if (args.errors != nullptr && args.errors->kernel != 0) return;
    for (std::uint32_t chunk = thread.block(); chunk < args.num_chunks(); chunk += thread.blocks()) {
      const int number = args.update_of(chunk);
      UpdateArgs one;
      for (int v = 0; v < Update::num_variables; ++v) one.variables[v] = args.variables[v][number];
      for (int f = 0; f < UpdateArgs::max_factors; ++f) one.factors[f] = args.factors[f];
      one.use_nesterov = args.use_nesterov;
      const Update update(one);
      const T* const gradient = static_cast<const T*>(args.gradients[number]);
      const std::int64_t begin =
          std::int64_t{chunk - (number == 0 ? 0 : args.end_chunk[number - 1])} * Args::chunk_elements;
      const std::int64_t left = args.n[number] - begin;
      const std::int64_t end = begin + (left < Args::chunk_elements ? left : Args::chunk_elements);
      for (std::int64_t i = begin + thread.index_in_block(); i < end; i += thread.threads()) {
        update(i, static_cast<typename Update::C>(gradient[i]));
      }
    }
  }
};

namespace detail {

template <class Numbers, class Floats>
struct JointUpdateBodiesOf;
template <class... Ns, class... Fs>
struct JointUpdateBodiesOf<TypeList<Ns...>, TypeList<Fs...>> {
  using type = TypeList<JointUpdateBody<AssignUpdate<Add, Ns>, Ns>..., JointUpdateBody<AssignUpdate<Sub, Ns>, Ns>...,
                        JointUpdateBody<RuleUpdate<dflow::detail::GradientDescentRule, Fs>, Fs>...,
                        JointUpdateBody<RuleUpdate<dflow::detail::MomentumRule, Fs>, Fs>...,
                        JointUpdateBody<RuleUpdate<dflow::detail::AdamRule, Fs>, Fs>...,
                        JointUpdateBody<RuleUpdate<dflow::detail::RmsPropRule, Fs>, Fs>...>;
};

}  // namespace detail

using JointUpdateBodies = typename detail::JointUpdateBodiesOf<detail::DeviceElements<NumberTypes>, FloatTypes>::type;

}  // namespace dflow::cuda
