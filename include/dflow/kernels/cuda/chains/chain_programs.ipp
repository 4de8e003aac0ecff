#pragma once

#include <dflow/kernels/cuda/chains/chain_programs.hpp>
#include <dflow/kernels/cuda/driver/driver.hpp>

namespace dflow::cuda {

namespace detail {

/// After a lack of memory the next call may succeed; after the loss of a device there may be no next call.
inline bool is_refusal(ErrorCode code) noexcept { return !is_sticky(code) && code != ErrorCode::out_of_memory; }

/// Fills the program, or its refusal.
inline ErrorCode make_program(const DeviceCore& core, Programs& programs, const ChainPlanning::Call& call,
                              ChainProgram& program) {
  DeviceProperties properties;
  ErrorCode code = core.driver().properties(core.device(), properties);
  if (code != ErrorCode::ok) return code;
  std::string image, log;
  code = programs.compile(call.text, properties.major * 10 + properties.minor, image, log);
  if (code == ErrorCode::ok) {
    code = programs.load(core.device(), image, program.program);
    if (code == ErrorCode::ok) code = programs.find_kernel(core.device(), program.program, dense_chain, program.dense);
    if (code == ErrorCode::ok && call.broadcasts) {
      code = programs.find_kernel(core.device(), program.program, broadcast_chain, program.broadcast);
    }
  }
  if (code == ErrorCode::ok) return code;
  if (program.is_made()) static_cast<void>(programs.unload(core.device(), program.program));
  program.program = ProgramHandle::none;
  if (!is_refusal(code)) return code;
  program.refusal = log.empty() ? str_cat("the code does not load: ", name_of(code), " (", static_cast<int>(code), ")")
                                : std::move(log);
  return ErrorCode::ok;
}

}  // namespace detail

ErrorCode ChainPlanning::make(const DeviceCore& core, const Call& call, std::size_t, Handle& handle,
                              std::size_t&) noexcept {
  Programs* const programs = core.driver().programs();
  try {
    auto program = std::make_unique<ChainProgram>();
    program->dense = {"chain", nullptr, nullptr, 0};
    program->broadcast = {"chain, broadcast", nullptr, nullptr, 0};
    if (programs == nullptr) {
      program->refusal = "there is no NVRTC";
    } else if (const ErrorCode code = detail::make_program(core, *programs, call, *program); code != ErrorCode::ok) {
      return code;
    }
    handle = static_cast<Handle>(reinterpret_cast<std::uintptr_t>(program.release()));
    return ErrorCode::ok;
  } catch (...) {
    return ErrorCode::out_of_memory;
  }
}

void ChainPlanning::destroy(const DeviceCore& core, Handle handle) noexcept {
  const std::unique_ptr<const ChainProgram> program(&program_of(handle));
  if (program->is_made()) static_cast<void>(core.driver().programs()->unload(core.device(), program->program));
}

}  // namespace dflow::cuda
