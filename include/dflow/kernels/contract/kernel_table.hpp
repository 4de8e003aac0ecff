#pragma once

/// Public: tables of kernels, one for each type of device.

#include <dflow/kernels/contract/typed_kernel.hpp>
#include <dflow/op/op_table.hpp>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow {

struct Formula;

/// The cost of one run, as far as the shapes tell it when the node is built.
struct KernelCost {
  double flops = 0;
  double bytes = 0;  ///< read and written
};

using KernelFactory = std::unique_ptr<AnyKernel> (*)(const KernelInit&);

/// One kernel that does the work of several nodes of an op, for example one GPU launch for many variables instead of
/// one launch for each. The op has no outputs; the nodes have the same element types and attributes, and no node
/// depends on another. The results equal the results of separate nodes, bit for bit.
struct JointKernel {
  /// Bit i: input i is one edge, the same for all nodes.
  std::uint64_t same_inputs = 0;
  /// The most bytes that the joined nodes may hold, all together, until the last of them could run.
  std::int64_t max_held_bytes = 0;
  /// The bytes that a node holds and would release sooner if it ran alone. None: the node has to run alone.
  std::optional<std::int64_t> (*held_bytes)(const KernelInit&) = nullptr;
  /// A synchronous kernel. Its inputs are the inputs of all nodes, one node after the other. It `sees_dead_inputs`, and
  /// passes over a node that has a dead input. Its errors name the node concerned. The nodes live as long as the
  /// kernel.
  std::unique_ptr<AnyKernel> (*make)(std::span<const KernelInit> members) = nullptr;
};

/// One op on one device type.
struct KernelEntry {
  const OpDef* op = nullptr;
  KernelFactory make = nullptr;
  /// False for element types without a kernel. Null: there is a kernel for all element types that the op allows.
  bool (*supports)(const TypeArgs&) = nullptr;
  /// Bit i: argument i of the op's inputs (outputs) is in host memory, wherever the device computes. A list is one
  /// argument, however long. Meant for shapes, axes and other arguments that control the computation.
  std::uint64_t host_inputs = 0;
  std::uint64_t host_outputs = 0;
  /// Null: every byte of inputs and outputs once, one operation per output element (`default_cost`).
  KernelCost (*cost)(const KernelInit&) = nullptr;
  /// The library's own kernels set all their outputs. The outputs of other kernels are checked.
  bool is_trusted = false;
  /// For the `make` functions of tables that are made at run time: the information that they need besides the node.
  const void* data = nullptr;
  /// Says, by element types, how several nodes run as one. If this pointer or its result is null, each node runs alone.
  const JointKernel* (*joint)(const TypeArgs&) = nullptr;
  /// The op's formula for one element of each of `num_inputs` inputs, by which a device puts several ops into one
  /// kernel. If this pointer or its result is null, the op runs alone.
  const Formula* (*formula)(int num_inputs) = nullptr;
  /// The kernel may wait for values that the step makes elsewhere, or leave outputs dead. Nodes that depend on it are
  /// not put into one kernel with nodes that do not. It does not count for the library's ops.
  bool may_wait = false;

  bool supports_types(const TypeArgs& types) const noexcept { return supports == nullptr || supports(types); }
};

/// Rows of a kernel table that the compiler made: sorted by the ops' names.
struct KernelRows {
  std::span<const KernelEntry> entries;
  const KernelRows* parent = nullptr;  ///< asked for what is not among `entries`

  const KernelEntry* find(std::string_view op) const noexcept;
  /// The number of levels (the rows here, then each parent) asked before the level that has the op; the number of all
  /// levels if none has it.
  std::size_t depth_of(std::string_view op) const noexcept;
};

/// Returns an error if a device lacks something that all kernels of a table need, such as a `DeviceState` of their
/// class.
using DeviceCheck = Status (*)(const DeviceContext& device);

/// The kernels of one device type, by op. It stands beside the op table, which says nothing of devices. A session takes
/// several.
///
/// Thread safety: immutable. A value type; the data that it points to is static, or kept by the table.
class KernelTable {
 public:
  /// Precondition: the rows are static.
  KernelTable(std::string_view device_type, KernelRows rows, DeviceCheck device_check = nullptr)
      : device_type_(device_type), rows_(rows), check_(device_check) {}
  /// A table made at run time, in any order. Errors: InvalidArgument if an op is in it twice, or a row lacks `op` or
  /// `make`.
  KernelTable(std::string device_type, std::vector<KernelEntry> entries, DeviceCheck check = nullptr);

  /// As in a device's name: in upper case.
  std::string_view device_type() const noexcept { return device_type_; }
  /// An error if the table's kernels cannot run on the device.
  Status check(const DeviceContext& device) const;
  /// Null if there is no kernel for an op of that name.
  const KernelEntry* find(std::string_view op) const noexcept { return rows_.find(op); }
  /// As long as the table lives.
  const KernelRows& rows() const noexcept { return rows_; }
  /// Calls `visit` for every entry, the parent's first, each part in order of names.
  void for_each(FunctionRef<void(const KernelEntry&)> visit) const;

 private:
  struct Owned;

  std::string_view device_type_;
  KernelRows rows_;
  DeviceCheck check_ = nullptr;
  std::shared_ptr<const Owned> owner_;
};

/// Kernel tables for any number of device types, in the order of the search: the tables of a session, or of one device.
/// If several tables for one type have the op, the first one counts.
///
/// Thread safety: const functions may be called from any thread.
class KernelTables {
 public:
  KernelTables() = default;
  explicit KernelTables(std::vector<KernelTable> tables) : tables_(std::move(tables)) {}

  void add(KernelTable table);
  /// Inserts a table as number `position`, before the table that had this number. Precondition: there are at least
  /// `position` tables.
  void insert(std::size_t position, KernelTable table);
  std::span<const KernelTable> tables() const noexcept;
  /// The tables of one device: the tables for its type, then `own`. `own` is the table that the device brings itself,
  /// which no other device of the type gets; null for none. Errors: InvalidArgument if a table that the device's
  /// kernels come from does not know devices like it, or if `own` is for another type.
  KernelTables for_device(const DeviceContext& device, const KernelTable* own) const;
  /// The tables of a device of this type in another process, as far as they are known here: the tables for its type.
  KernelTables for_type(std::string_view device_type) const;
  /// Null if no table for that type of device has the op.
  const KernelEntry* find(std::string_view device_type, std::string_view op) const noexcept;

 private:
  std::vector<KernelTable> tables_;
};

/// `bytes` of all inputs and outputs with known shapes (unknown dimensions count as 32), and one operation per output
/// element.
KernelCost default_cost(const KernelInit& init);
inline KernelCost cost_of(const KernelEntry& entry, const KernelInit& init) {
  return entry.cost == nullptr ? default_cost(init) : entry.cost(init);
}

/// A rough time in nanoseconds of one run in the calling thread. The executor uses it to decide whether the run is
/// worth another thread. The kernel's own estimate comes first; without one, the row's cost and fixed rates
/// (`KernelRates`) give the time. A kernel that returns when its work is issued is cheap, and so is a library kernel
/// without an estimate.
double estimated_ns(const AnyKernel& kernel, const KernelEntry& entry, const KernelInit& init);

/// The rates of one core with plain loops, as a bound on the time of a kernel. The time is the slower of computing and
/// of moving bytes (the roofline model: Williams, Waterman, Patterson 2009), plus the call.
struct KernelRates {
  static constexpr double call_ns = 300;
  static constexpr double flops_per_ns = 2;
  static constexpr double bytes_per_ns = 8;
  static constexpr double unknown_ns = 1000;  ///< of what is not estimated
};

namespace detail {

/// The claims about an op's row that its kernels for one device type make, over all element types with a kernel.
struct RowClaims {
  bool has_kernel = false;
  bool agree = true;
  bool have_cost = false;
  bool have_joint = false;
  bool may_wait = false;
  std::uint64_t host_inputs = 0;
  std::uint64_t host_outputs = 0;

  constexpr void add(std::uint64_t inputs, std::uint64_t outputs, bool has_cost, bool has_joint, bool waits) {
    agree = agree && (!has_kernel || (inputs == host_inputs && outputs == host_outputs));
    has_kernel = true;
    have_cost = have_cost || has_cost;
    have_joint = have_joint || has_joint;
    may_wait = may_wait || waits;
    host_inputs = inputs;
    host_outputs = outputs;
  }
};

template <class K>
constexpr bool has_cost = requires(const KernelInit& init) { KernelCost(K::cost(init)); };
template <class K>
constexpr bool has_joint = requires { K::joint.make; };

template <class K>
constexpr bool makes_dead_outputs = false;
template <class K>
  requires requires { K::makes_dead_outputs; }
constexpr bool makes_dead_outputs<K> = K::makes_dead_outputs;
/// A kernel class that makes its own kernel object may make any kernel; an elementwise op's kernel computes.
template <class O, class K>
constexpr bool may_wait = RunsAsync<K> || makes_dead_outputs<K> ||
                          (!ElementwiseOpType<O> && requires(const KernelInit& init) { K::make(init); });

template <class O, class K>
constexpr void add_claims(RowClaims& claims) {
  std::uint64_t inputs = 0, outputs = 0;
  if constexpr (requires { K::host_inputs; }) inputs = K::host_inputs;
  if constexpr (requires { K::host_outputs; }) outputs = K::host_outputs;
  claims.add(inputs, outputs, has_cost<K>, has_joint<K>, !O::in_library && may_wait<O, K>);
}

template <class O, class Device, class... Bound>
constexpr void gather_claims(RowClaims& claims, TypeList<Bound...>);
template <class O, class Device, class... Bound, class... Allowed>
constexpr void gather_claims_of_any(RowClaims& claims, TypeList<Bound...>, TypeList<Allowed...>) {
  (gather_claims<O, Device>(claims, TypeList<Bound..., Allowed>{}), ...);
}
template <class O, class Device, class... Bound>
constexpr void gather_claims(RowClaims& claims, TypeList<Bound...> bound) {
  if constexpr (HasKernel<O, Device, Bound...>) {
    add_claims<O, Kernel<O, Device, Bound...>>(claims);
  } else if constexpr (sizeof...(Bound) < O::TypeParams::size) {
    gather_claims_of_any<O, Device>(claims, bound, element_t<sizeof...(Bound), typename O::TypeParams>{});
  }
}

/// The formula of the op's kernels for a device type. All element types have one formula, and the kernel for the first
/// element type gives it.
template <class O, class Device, class... Firsts>
constexpr auto formula_of_row(TypeList<Firsts...>) -> const Formula* (*)(int num_inputs) {
  if constexpr (HasKernel<O, Device, Firsts...>) {
    if constexpr (requires(int n) { Kernel<O, Device, Firsts...>::formula(n); })
      return &Kernel<O, Device, Firsts...>::formula;
  } else if constexpr (sizeof...(Firsts) < O::TypeParams::size) {
    using Allowed = element_t<sizeof...(Firsts), typename O::TypeParams>;
    return formula_of_row<O, Device>(TypeList<Firsts..., element_t<0, Allowed>>{});
  }
  return nullptr;
}

template <class O, class D>
struct OwnCost {
  using Op = O;
  using Device = D;
  using Result = std::optional<KernelCost>;
  template <class... Ts>
  static Result of(const KernelInit& init) {
    if constexpr (has_cost<Kernel<O, D, Ts...>>) return Kernel<O, D, Ts...>::cost(init);
    return std::nullopt;
  }
};
/// The cost of a node, from the kernel for its element types.
template <class O, class Device>
KernelCost cost_by_types(const KernelInit& init) {
  const std::optional<KernelCost> cost = use_kernel<OwnCost<O, Device>>(init.node.types, init);
  return cost ? *cost : default_cost(init);
}

template <class... Params, std::size_t... I>
bool are_allowed(const TypeArgs& types, TypeList<Params...>, std::index_sequence<I...>) {
  return (in_mask(types[I], dtype_mask<Params>) && ...);
}
template <class O, class D>
struct IsThere {
  using Op = O;
  using Device = D;
  using Result = bool;
  template <class... Ts>
  static Result of(const TypeArgs& types) {
    using Params = typename O::TypeParams;
    if constexpr (sizeof...(Ts) == Params::size) return true;
    return are_allowed(types, Params{}, std::make_index_sequence<Params::size>{});
  }
};
template <class O, class Device>
bool supports_types(const TypeArgs& types) {
  return use_kernel<IsThere<O, Device>>(types, types);
}

template <class O, class D>
struct FindJoint {
  using Op = O;
  using Device = D;
  using Result = const JointKernel*;
  template <class... Ts>
  static Result of(const TypeArgs&) {
    if constexpr (has_joint<Kernel<O, D, Ts...>>) return &Kernel<O, D, Ts...>::joint;
    return nullptr;
  }
};
template <class O, class Device>
const JointKernel* joint_by_types(const TypeArgs& types) {
  return use_kernel<FindJoint<O, Device>>(types, types);
}

template <class O, class Device>
constexpr KernelEntry entry_of() {
  if constexpr (in_library<O, Device>) {
    return {.op = &op_def<O>, .make = &make_library_kernel<O, Device>, .is_trusted = true};
  } else {
    constexpr RowClaims claims = [] {
      RowClaims gathered;
      gather_claims<O, Device>(gathered, TypeList<>{});
      return gathered;
    }();
    static_assert(
        claims.has_kernel,
        "no kernel of this op can be seen here: specialise dflow::Kernel<Op, Device, T> for an element type of "
        "the op, or dflow::Kernel<Op, Device> for all, before the op is put into a table");
    static_assert(
        claims.agree,
        "the kernels of an op for a type of devices must give the same host_inputs and host_outputs for all element "
        "types");
    KernelEntry entry{.op = &op_def<O>,
                      .make = &make_kernel<O, Device>,
                      .supports = &supports_types<O, Device>,
                      .host_inputs = claims.host_inputs,
                      .host_outputs = claims.host_outputs,
                      .formula = formula_of_row<O, Device>(TypeList<>{}),
                      .may_wait = claims.may_wait};
    if constexpr (claims.have_cost) entry.cost = &cost_by_types<O, Device>;
    if constexpr (claims.have_joint) entry.joint = &joint_by_types<O, Device>;
    return entry;
  }
}

template <class Device, class List>
struct SortedKernels;
template <class Device, class... Ops>
struct SortedKernels<Device, TypeList<Ops...>> {
  // Lists instead of folds: clang takes folds of up to 256.
  static constexpr std::size_t size = [] {
    std::size_t count = 0;
    for (const bool has_kernel : std::initializer_list<bool>{Ops::has_kernel...}) count += has_kernel ? 1 : 0;
    return count;
  }();
  static constexpr auto entries = [] {
    std::array<KernelEntry, size> sorted{};
    std::size_t n = 0;
    [[maybe_unused]] const auto add = [&]<class O>() {
      if constexpr (O::has_kernel) sorted[n++] = entry_of<O, Device>();
    };
    static_cast<void>(std::initializer_list<int>{(add.template operator()<Ops>(), 0)...});
    sort_by_name(sorted, [](const KernelEntry& entry) { return entry.op->name; });
    return sorted;
  }();
};

}  // namespace detail

/// The kernels of a list of ops for a device type: all `Kernel<Op, Device, Ts...>` that the including file can see, and
/// the library's kernels. `static Status Device::check(const DeviceContext&)`, if it exists, says which devices the
/// kernels can run on. The list must not contain the standard ops.
template <class Device, class... Ops>
KernelTable kernels_of(OpList<false, Ops...>, const KernelRows* parent = nullptr) {
  using Sorted =
      detail::SortedKernels<Device,
                            typename detail::Concatenated<typename detail::WithDerivatives<Ops>::type...>::type>;
  DeviceCheck check = nullptr;
  if constexpr (requires(const DeviceContext& device) { Device::check(device); }) check = &Device::check;
  return {Device::type, KernelRows{Sorted::entries, parent}, check};
}

}  // namespace dflow
