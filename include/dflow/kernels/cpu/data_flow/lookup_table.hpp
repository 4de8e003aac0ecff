#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/cpu/file_kernel.hpp>
#include <dflow/kernels/state/handle_kernel.hpp>
#include <dflow/ops/data_flow/lookup_table.hpp>
#include <dflow/state/tables/lookup_table_state.hpp>

#include <memory>
#include <string>

namespace dflow {

namespace detail {

template <class O, bool is_mutable>
struct LookupTableKernel : HandleKernel<LookupTableKernel<O, is_mutable>, O, LookupTableState> {
  explicit LookupTableKernel(const KernelInit& init) : HandleKernel<LookupTableKernel, O, LookupTableState>(init) {
    const auto& attrs = init.node.attrs_as<O>();
    kind = {attrs.key_dtype, attrs.value_dtype, attrs.value_shape.to_shape(), is_mutable};
  }
  std::shared_ptr<LookupTableState> make(const std::string& name) const {
    return std::make_shared<LookupTableState>(name, kind);
  }
  bool is_same_kind(const LookupTableState& state) const { return state.kind() == kind; }

  LookupTableState::Kind kind;
};

/// The kernel of LookupTableImport and InitializeTable.
struct LookupImportKernel {
  static constexpr bool splits = false;
  bool is_initialization = false;
  explicit LookupImportKernel(const KernelInit& init);
  double cost_ns(const KernelInit& init) const;
  void operator()(KernelContext& context) const;
};

void fill_table_from_file(KernelContext& context);

}  // namespace detail

template <>
struct Kernel<MutableHashTableOp, Cpu> : detail::LookupTableKernel<MutableHashTableOp, true> {
  using LookupTableKernel::LookupTableKernel;
};
template <>
struct Kernel<HashTableOp, Cpu> : detail::LookupTableKernel<HashTableOp, false> {
  using LookupTableKernel::LookupTableKernel;
};
template <>
struct Kernel<LookupTableFind, Cpu> {
  static constexpr bool splits = false;
  double cost_ns(const KernelInit& init) const;
  void operator()(KernelContext& context) const;
};
template <>
struct Kernel<LookupTableInsert, Cpu> {
  static constexpr bool splits = false;
  double cost_ns(const KernelInit& init) const;
  void operator()(KernelContext& context) const;
};
template <>
struct Kernel<LookupTableRemove, Cpu> {
  static constexpr bool splits = false;
  void operator()(KernelContext& context) const;
};
template <>
struct Kernel<LookupTableSize, Cpu> {
  static constexpr bool splits = false;
  void operator()(KernelContext& context) const {
    *context.allocate_output<std::int64_t>(0, {}).data() = context.resource<LookupTableState>(0).size();
  }
};
template <>
struct Kernel<LookupTableExport, Cpu> {
  static constexpr bool splits = false;
  void operator()(KernelContext& context) const;
};
template <>
struct Kernel<LookupTableImport, Cpu> : detail::LookupImportKernel {
  using LookupImportKernel::LookupImportKernel;
};
template <>
struct Kernel<InitializeTable, Cpu> : detail::LookupImportKernel {
  using LookupImportKernel::LookupImportKernel;
};
template <>
struct Kernel<InitializeTableFromTextFile, Cpu> : detail::FileKernel {
  explicit Kernel(const KernelInit& init) : FileKernel(init, &detail::fill_table_from_file) {}
};

}  // namespace dflow
