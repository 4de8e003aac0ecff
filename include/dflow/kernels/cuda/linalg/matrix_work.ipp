#pragma once

#include <dflow/kernels/cuda/bodies/made.hpp>
#include <dflow/kernels/cuda/linalg/kernel_work.ipp>
#include <dflow/kernels/cuda/linalg/matrix_work.hpp>
#include <dflow/kernels/cuda/routines/copies.ipp>

#include <string>
#include <utility>

namespace dflow::cuda::detail {

AnyTensor& MatrixWork::by_columns(const AnyTensor& x) {
  const MatrixSizes of(x.shape());
  AnyTensor& made = temporary(x.dtype(), {of.count, of.columns, of.rows});
  transpose(x, of.count, of.rows, of.columns, made);
  return made;
}

void MatrixWork::copy_by_rows(const AnyTensor& from, std::int64_t from_rows, std::int64_t from_columns,
                              AnyTensor& to) const {
  const MatrixSizes of(to.shape());
  copy_strided(context(), {of.count, of.rows, of.columns}, {&from, 0, {from_rows * from_columns, 1, from_rows}},
               {&to, 0, {of.size(), of.columns, 1}}, temporaries());
}

void MatrixWork::fill_identity(AnyTensor& y) const {
  const MatrixSizes of(y.shape());
  const IdentityArgs args{y.num_elements(), of.rows, of.columns, y.raw_data()};
  launch(functions_.identity, args.n, &args);
}

void MatrixWork::conjugate(const AnyTensor& x, AnyTensor& y) const {
  const ConjugateArgs args{y.num_elements(), x.raw_data(), y.raw_data()};
  launch(functions_.conjugate, args.n, &args);
}

void MatrixWork::keep_triangle(AnyTensor& y, bool is_lower) const {
  const MatrixSizes of(y.shape());
  BandArgs args;
  args.n = y.num_elements();
  args.rows = of.rows;
  args.columns = of.columns;
  args.lower = is_lower ? of.rows : 0;
  args.upper = is_lower ? 0 : of.columns;
  args.x = args.y = y.raw_data();
  launch(function_of_size<BandBody>(size_of(y.dtype())), args.n, &args);
}

void MatrixWork::find_workspace(const SolverCall& call, SolverOperands& operands) {
  call_library("asking for the memory of a decomposition", [&](Driver& driver, const DeviceCore& core) {
    return driver.solvers().solver_workspace(core.device(), call, operands, operands.workspace_bytes);
  });
  operands.workspace = workspace(operands.workspace_bytes);
}

void MatrixWork::issue(const SolverCall& call, const SolverOperands& operands) const {
  call_library("a decomposition", [&](Driver& driver, const DeviceCore& core) {
    return driver.solvers().run_solver(core.device(), call, operands, uses().all(), core.compute());
  });
}

CudaStep::Note MatrixWork::note(std::string_view message) const {
  return step_of(context()).note(
      context(), [text = std::string(message)](const ErrorSlot&) { return Status::invalid_argument(text); });
}

void MatrixWork::check_diagonals(const AnyTensor& a, std::int64_t count, std::int64_t n, bool must_be_positive,
                                 std::string_view message) const {
  const CudaStep::Note noted = note(message);
  const CheckDiagonalArgs args{count, n, a.raw_data(), must_be_positive, noted.slot, noted.kernel};
  launch(functions_.check_diagonal, count * n, &args, noted.slot);
}

void MatrixWork::check_info(const AnyTensor& info, std::string_view message) const {
  const CudaStep::Note noted = note(message);
  const CheckInfoArgs args{info.num_elements(), static_cast<const std::int32_t*>(info.raw_data()), noted.slot,
                           noted.kernel};
  launch(kernel_function<CheckInfoBody>(), args.count, &args, noted.slot);
}

void MatrixWork::check_values(const AnyTensor& values, std::string_view message) const {
  const CudaStep::Note noted = note(message);
  CheckFiniteArgs args;
  args.n = values.num_elements();
  args.x = values.raw_data();
  args.errors = noted.slot;
  args.kernel = noted.kernel;
  launch(values.dtype() == DType::float32 ? kernel_function<CheckFiniteBody<float>>()
                                          : kernel_function<CheckFiniteBody<double>>(),
         args.n, &args, noted.slot);
}

const AnyTensor& MatrixWork::flag_matrices(const AnyTensor& x, Flagged counts, std::string_view message) {
  const MatrixSizes of(x.shape());
  AnyTensor& flags = cleared(DType::uint32, {of.count});
  const CudaStep::Note noted = message.empty() ? CudaStep::Note() : note(message);
  FlagMatricesArgs args;
  args.n = x.num_elements();
  args.rows = of.rows;
  args.columns = of.columns;
  args.is_lower = counts.is_lower;
  args.only_nan = counts.only_nan;
  args.x = x.raw_data();
  args.flags = static_cast<std::uint32_t*>(flags.raw_data());
  args.errors = noted.slot;
  args.kernel = noted.kernel;
  launch(functions_.flag_matrices, args.n, &args, noted.slot);
  return flags;
}

void MatrixWork::replace_flagged(const AnyTensor& flags, AnyTensor& y, bool by_nan) const {
  if (y.num_elements() == 0) return;
  const ReplaceFlaggedArgs args{y.num_elements(), y.num_elements() / flags.num_elements(),
                                static_cast<const std::uint32_t*>(flags.raw_data()), y.raw_data(), by_nan};
  launch(functions_.replace_flagged, args.n, &args);
}

}  // namespace dflow::cuda::detail
