#pragma once

#include <dflow/core/broadcast.hpp>
#include <dflow/kernels/contract/kernel_table.hpp>
#include <dflow/kernels/cuda/chains/chain_text.hpp>
#include <dflow/kernels/cuda/internal/elementwise_chain.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace dflow::cuda {

namespace detail {

/// The positions of a chain's inputs during the walk through the output. Neighbouring dimensions are joined where all
/// inputs allow it.
struct ChainWalk {
  int rank = 0;
  std::array<std::int64_t, max_broadcast_rank> extents{};
  std::array<std::array<std::int64_t, max_broadcast_rank>, max_chain_inputs> strides{};

  ChainWalk(std::span<const Shape> inputs, const Shape& shape) {
    std::array<std::array<std::int64_t, max_rank>, max_chain_inputs> full;
    for (std::size_t k = 0; k < inputs.size(); ++k) full[k] = broadcast_strides(inputs[k], shape);
    for (int d = 0; d < shape.rank(); ++d) {
      if (shape.dim(d) == 1) continue;
      const auto at = static_cast<std::size_t>(d);
      bool joins = rank > 0;
      const auto last = static_cast<std::size_t>(rank - 1);
      for (std::size_t k = 0; k < inputs.size(); ++k) joins = joins && strides[k][last] == full[k][at] * shape.dim(d);
      if (!joins) extents[static_cast<std::size_t>(rank++)] = 1;
      const auto to = static_cast<std::size_t>(rank - 1);
      extents[to] *= shape.dim(d);
      for (std::size_t k = 0; k < inputs.size(); ++k) strides[k][to] = full[k][at];
    }
  }
};

/// The arguments of a chain's kernel, one after the other.
struct ChainArguments {
  static constexpr std::size_t most =
      3 + max_chain_inputs + max_chain_outputs + max_broadcast_rank * (1 + max_chain_inputs);
  static constexpr std::uint32_t word_bytes = sizeof(std::int64_t);
  std::array<std::int64_t, most> words;
  std::size_t size = 0;

  void add(std::int64_t word) { words[size++] = word; }
  void add(const void* block) { add(static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(block))); }
};

class ChainKernel final : public AnyKernel {
 public:
  explicit ChainKernel(const KernelInit& init) : ChainKernel(init, read_members(init)) {}

  void run(KernelContext& context) const override {
    std::array<Shape, max_chain_inputs> inputs;
    for (std::size_t k = 0; k < form_.inputs.size(); ++k) inputs[k] = context.input(static_cast<int>(k)).shape();
    const std::span<const Shape> shapes(inputs.data(), form_.inputs.size());
    const std::optional<Shape> shape = shape_of_outputs(shapes);
    const bool is_one = shape && program_ != nullptr && program().is_made() && run_as_one(context, shapes, *shape);
    state_.chain_counter.add_run(is_one);
    if (!is_one) run_apart(context);
  }

 private:
  struct Member {
    Node node;
    std::unique_ptr<AnyKernel> kernel;
    std::vector<SlotId> reads;
    std::uint64_t last_reads = 0;  ///< bit i: nobody reads input i, or hands it out, any more
  };
  struct Members {
    ChainForm form;
    std::vector<Member> all;

    /// They may be run instead.
    bool repeat() const {
      return std::all_of(all.begin(), all.end(), [](const Member& one) { return one.kernel->traits().repeats; });
    }
  };

  ChainKernel(const KernelInit& init, Members members)
      : AnyKernel(KernelTraits{.repeats = members.repeat()}),
        state_(init.device.state_as<CudaState>()),
        form_(std::move(members.form)),
        members_(std::move(members.all)) {
    find_last_reads();
    form_.broadcasts = may_broadcast(init);
    try {
      program_ = state_.chains.find({chain_text(form_), form_.broadcasts});
    } catch (const Error& error) {
      if (error.code() != Code::resource_exhausted) throw;
      state_.chain_counter.add_refused(error.what());
      return;
    }
    if (program().is_made()) {
      const auto words = static_cast<std::uint32_t>(2 + form_.inputs.size() + form_.gives.size());
      dense_ = program().dense;
      dense_.argument_bytes = ChainArguments::word_bytes * words;
      broadcast_ = program().broadcast;
      const auto of_walk = static_cast<std::uint32_t>(max_broadcast_rank * (1 + form_.inputs.size()));
      broadcast_.argument_bytes = ChainArguments::word_bytes * (words + of_walk);
      state_.chain_counter.add_made();
    } else {
      state_.chain_counter.add_refused(program().refusal);
    }
  }

  const ChainProgram& program() const { return ChainPlanning::program_of(program_->handle()); }

  static Members read_members(const KernelInit& init) {
    Members members;
    const auto& attrs = init.node.attrs_as<ElementwiseChain>();
    for (const std::int64_t member : attrs.gives) members.form.gives.push_back(static_cast<std::int32_t>(member));
    members.form.inputs = attrs.Tin;
    std::size_t read = 0, type = 0;
    for (std::size_t m = 0; m < attrs.ops.size(); ++m) {
      const KernelEntry* const entry =
          init.tables == nullptr ? nullptr : init.tables->find(init.device.type, attrs.ops[m]);
      const auto num_reads = static_cast<int>(attrs.reads[read++]);
      const Formula* const formula =
          entry == nullptr || entry->formula == nullptr ? nullptr : entry->formula(num_reads);
      if (formula == nullptr)
        throw_error(Status::internal(str_cat("op ", attrs.ops[m], " is in a chain and has no formula")));
      ChainMember& form =
          members.form.members.emplace_back(ChainMember{formula, attrs.types[type], attrs.makes[m], {}});
      Member& member = members.all.emplace_back();
      member.node.op = entry->op;
      member.node.name = attrs.names[m];
      for (std::size_t t = 0; t < entry->op->type_params.size(); ++t) member.node.types.push_back(attrs.types[type++]);
      member.node.outputs.push_back({attrs.makes[m], PartialShape::unknown()});
      member.node.where = init.node.where;
      std::vector<OutputInfo> infos;
      for (int i = 0; i < num_reads; ++i, ++read) {
        const auto slot = static_cast<std::size_t>(attrs.reads[read]);
        form.reads.push_back(static_cast<std::int32_t>(slot));
        member.reads.emplace_back(slot);
        infos.push_back({slot < attrs.Tin.size() ? attrs.Tin[slot] : attrs.makes[slot - attrs.Tin.size()],
                         PartialShape::unknown()});
      }
      member.kernel = entry->make(KernelInit{member.node, infos, init.device, entry, init.tables});
    }
    return members;
  }

  void find_last_reads() {
    std::vector<bool> is_needed(form_.inputs.size() + members_.size());
    for (const std::int32_t member : form_.gives)
      is_needed[form_.inputs.size() + static_cast<std::size_t>(member)] = true;
    for (std::size_t m = members_.size(); m-- > 0;) {
      Member& member = members_[m];
      for (std::size_t i = 0; i < member.reads.size(); ++i) {
        const bool is_once = std::count(member.reads.begin(), member.reads.end(), member.reads[i]) == 1;
        if (is_once && !is_needed[member.reads[i].position()]) member.last_reads |= std::uint64_t{1} << i;
      }
      for (const SlotId slot : member.reads) is_needed[slot.position()] = true;
    }
  }

  /// Unless the inferred shapes say that each input is one element, or all elements of the outputs in their order.
  bool may_broadcast(const KernelInit& init) const {
    const std::optional<std::int64_t> all = init.node.outputs.front().shape.num_elements();
    if (!all) return true;
    return std::any_of(init.inputs.begin(), init.inputs.end(), [&](const OutputInfo& input) {
      const std::optional<std::int64_t> elements = input.shape.num_elements();
      return !elements || (*elements != 1 && *elements != *all);
    });
  }

  /// The shape that a member makes of inputs of the given shapes, if its formula accepts them.
  static std::optional<Shape> shape_of_member(const ChainMember& member, std::span<const Shape> shapes) {
    const auto read = [&](std::size_t i) -> const Shape& { return shapes[static_cast<std::size_t>(member.reads[i])]; };
    std::optional<Shape> shape = read(0);
    if (member.formula->shapes == Formula::Shapes::last_dimension) {
      const int rank = read(0).rank();
      if (rank < 2 || read(1).rank() != 1 || read(1).dim(0) != read(0).dim(rank - 1)) return std::nullopt;
      return shape;
    }
    const bool broadcasts = member.formula->shapes == Formula::Shapes::broadcast;
    for (std::size_t i = 1; i < member.reads.size() && shape; ++i) {
      if (read(i) == *shape) continue;
      shape = broadcasts ? broadcast_shapes(*shape, read(i)) : std::nullopt;
    }
    return shape;
  }

  /// The shape of all outputs; none if outputs have several shapes, or a member does not accept its inputs.
  std::optional<Shape> shape_of_outputs(std::span<const Shape> inputs) const {
    std::vector<Shape> shapes(inputs.begin(), inputs.end());
    shapes.reserve(inputs.size() + form_.members.size());
    for (const ChainMember& member : form_.members) {
      std::optional<Shape> shape = shape_of_member(member, shapes);
      if (!shape) return std::nullopt;
      shapes.push_back(*std::move(shape));
    }
    const auto given = [&](std::int32_t member) -> const Shape& {
      return shapes[inputs.size() + static_cast<std::size_t>(member)];
    };
    const Shape& first = given(form_.gives.front());
    for (const std::int32_t member : form_.gives) {
      if (given(member) != first) return std::nullopt;
    }
    return first;
  }

  /// False, and nothing has happened, if inputs are broadcast that were not expected to be.
  bool run_as_one(KernelContext& context, std::span<const Shape> shapes, const Shape& shape) const {
    std::int64_t repeated = 0;
    bool is_dense = true;
    for (std::size_t k = 0; k < shapes.size(); ++k) {
      const bool is_one = shapes[k].num_elements() == 1;
      repeated |= std::int64_t{is_one} << k;
      is_dense = is_dense && (is_one || shapes[k].num_elements() == shape.num_elements());
    }
    if (!is_dense && !form_.broadcasts) return false;
    ChainArguments arguments;
    arguments.add(shape.num_elements());
    for (std::size_t k = 0; k < shapes.size(); ++k)
      arguments.add(std::as_const(context.input(static_cast<int>(k))).raw_data());
    for (std::size_t o = 0; o < form_.gives.size(); ++o)
      arguments.add(make_output(context, static_cast<int>(o), shape).raw_data());
    if (shape.num_elements() == 0) return true;
    if (is_dense) {
      arguments.add(repeated);
    } else {
      const ChainWalk walk(shapes, shape);
      arguments.add(walk.rank);
      for (const std::int64_t extent : walk.extents) arguments.add(extent);
      for (std::size_t k = 0; k < shapes.size(); ++k) {
        for (const std::int64_t stride : walk.strides[k]) arguments.add(stride);
      }
    }
    state_.memory.core().hold(program_);
    launch(context, is_dense ? dense_ : broadcast_, grid_for(shape.num_elements()), arguments.words.data());
    return true;
  }

  /// Uses the buffer of an input that has all its elements: each element of it is read before an element of any
  /// output is written.
  static AnyTensor& make_output(KernelContext& context, int output, const Shape& shape) {
    for (int k = 0; k < context.num_inputs(); ++k) {
      const AnyTensor& x = context.input(k);
      if (x.is_initialized() && x.num_elements() == shape.num_elements() && x.dtype() == context.output_dtype(output) &&
          context.owns_input(k)) {
        return context.forward_or_allocate(k, output, shape);
      }
    }
    return context.allocate_output(output, shape);
  }

  void run_apart(KernelContext& context) const {
    std::vector<AnyTensor> slots(form_.inputs.size() + members_.size());
    for (std::size_t k = 0; k < form_.inputs.size(); ++k) slots[k] = context.take_input(static_cast<int>(k));
    for (std::size_t m = 0; m < members_.size(); ++m) {
      const Member& member = members_[m];
      KernelContext::Wiring wiring;
      wiring.node = &member.node;
      wiring.inputs = member.reads.data();
      wiring.num_inputs = static_cast<std::int32_t>(member.reads.size());
      wiring.first_output = SlotId(form_.inputs.size() + m);
      wiring.num_outputs = 1;
      wiring.forwardable = member.last_reads;
      KernelContext of_member(slots.data(), wiring, context.device(), context.step());
      member.kernel->run(of_member);
      for (std::size_t i = 0; i < member.reads.size(); ++i) {
        if ((member.last_reads >> i & 1u) != 0) slots[member.reads[i].position()] = AnyTensor();
      }
    }
    for (std::size_t o = 0; o < form_.gives.size(); ++o) {
      context.set_output(static_cast<int>(o), slots[form_.inputs.size() + static_cast<std::size_t>(form_.gives[o])]);
    }
  }

  CudaState& state_;
  ChainForm form_;
  std::vector<Member> members_;
  std::shared_ptr<const ChainPrograms::Plan> program_;  ///< null where there was no memory to make it
  KernelFunction dense_, broadcast_;                    ///< of the program
};

}  // namespace detail

std::unique_ptr<AnyKernel> make_chain_kernel(const KernelInit& init) {
  return std::make_unique<detail::ChainKernel>(init);
}

}  // namespace dflow::cuda
