#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
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

// One kernel for all element types: the table knows its own.

struct LookupFindKernel {
  double cost_ns(const KernelInit& init) const;
  void operator()(KernelContext& context) const;
};
struct LookupInsertKernel {
  double cost_ns(const KernelInit& init) const;
  void operator()(KernelContext& context) const;
};
struct LookupRemoveKernel {
  void operator()(KernelContext& context) const;
};
struct LookupExportKernel {
  void operator()(KernelContext& context) const;
};
/// Of LookupTableImport and InitializeTable.
struct LookupImportKernel {
  bool is_initialization = false;
  explicit LookupImportKernel(const KernelInit& init);
  double cost_ns(const KernelInit& init) const;
  void operator()(KernelContext& context) const;
};

/// None of them divides its work.
template <class O, class K>
struct LookupKernelMaker {
  struct Whole : K {
    using K::K;
    static constexpr bool splits = false;
  };
  static std::unique_ptr<AnyKernel> make(const KernelInit& init) {
    return std::unique_ptr<AnyKernel>(new SyncKernelOf<O, Whole>(init));
  }
};

}  // namespace detail

template <>
struct Kernel<MutableHashTableOp, Cpu> : detail::LookupTableKernel<MutableHashTableOp, true> {
  using LookupTableKernel::LookupTableKernel;
};
template <>
struct Kernel<HashTableOp, Cpu> : detail::LookupTableKernel<HashTableOp, false> {
  using LookupTableKernel::LookupTableKernel;
};
template <class K, class V>
struct Kernel<LookupTableFind, Cpu, K, V> : detail::LookupKernelMaker<LookupTableFind, detail::LookupFindKernel> {};
template <class K, class V>
struct Kernel<LookupTableInsert, Cpu, K, V> : detail::LookupKernelMaker<LookupTableInsert, detail::LookupInsertKernel> {
};
template <class K>
struct Kernel<LookupTableRemove, Cpu, K> : detail::LookupKernelMaker<LookupTableRemove, detail::LookupRemoveKernel> {};
template <>
struct Kernel<LookupTableSize, Cpu> {
  static constexpr bool splits = false;
  void operator()(KernelContext& context) const {
    *context.allocate_output<std::int64_t>(0, {}).data() = context.resource<LookupTableState>(0).size();
  }
};
template <class K, class V>
struct Kernel<LookupTableExport, Cpu, K, V> : detail::LookupKernelMaker<LookupTableExport, detail::LookupExportKernel> {
};
template <class K, class V>
struct Kernel<LookupTableImport, Cpu, K, V> : detail::LookupKernelMaker<LookupTableImport, detail::LookupImportKernel> {
};
template <class K, class V>
struct Kernel<InitializeTable, Cpu, K, V> : detail::LookupKernelMaker<InitializeTable, detail::LookupImportKernel> {};
template <>
struct Kernel<InitializeTableFromTextFile, Cpu> {
  static constexpr bool splits = false;
  InitializeTableFromTextFile::Attrs attrs;
  double cost_ns(const KernelInit&) const { return 1e6; }
  void operator()(KernelContext& context) const;
};

}  // namespace dflow
