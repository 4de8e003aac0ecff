#pragma once

#include <dflow/kernels/shared/send_recv_kernel.hpp>

#include <utility>

namespace dflow {

namespace detail {

template <class Op>
RendezvousKey key_of(const KernelInit& init) {
  const auto& attrs = init.node.attrs_as<Op>();
  return {attrs.send_device, attrs.send_device_incarnation, attrs.recv_device, attrs.tensor_name};
}

Rendezvous& rendezvous_of(const KernelContext& context) {
  if (context.step().rendezvous != nullptr) return *context.step().rendezvous;
  throw_error(Status::internal("a Send or Recv runs in a step without rendezvous"));
}

/// The graph declares the received type and shape, and consumers rely on them; the sender only claims them.
void take_received(KernelContext& context, AnyTensor tensor, bool is_dead) {
  if (is_dead) return context.set_output_dead(0);
  const Recv::Attrs& attrs = context.node().attrs_as<Recv>();
  const DType dtype = context.output_dtype(0);
  if (tensor.dtype() != dtype || !attrs.shape.is_compatible_with(tensor.shape())) {
    context.fail(str_cat("received ", dtype_name(tensor.dtype()), tensor.shape().to_string(), " as '",
                         attrs.tensor_name, "', wanted ", dtype_name(dtype), attrs.shape.to_string()));
  }
  context.set_output(0, std::move(tensor));
}

Status send_input(const RendezvousKey& key, const KernelContext& context) {
  Rendezvous& rendezvous = rendezvous_of(context);
  const StepContext& step = context.step();
  const bool is_dead = context.is_input_dead(0);
  const Send::Attrs& attrs = context.node().attrs_as<Send>();
  const SendArgs args{attrs.host_memory ? nullptr : context.device().memory, attrs.pushed};
  return step.frame.empty() && step.iteration == 0
             ? rendezvous.send(key, context.input(0), is_dead, args)
             : rendezvous.send(key.in_frame(step.frame, step.iteration), context.input(0), is_dead, args);
}

inline constexpr KernelTraits send_traits{.splits = false, .sees_dead_inputs = true};

class SendNow final : public AnyKernel {
 public:
  explicit SendNow(const KernelInit& init) : AnyKernel(send_traits), key_(key_of<Send>(init)) {}
  void run(KernelContext& context) const override { throw_if_error(send_input(key_, context)); }
  double cost_ns() const noexcept override { return 500; }

 private:
  RendezvousKey key_;
};

class SendWhenDone final : public AsyncKernel {
 public:
  explicit SendWhenDone(const KernelInit& init) : AsyncKernel(send_traits), key_(key_of<Send>(init)) {}
  void run_async(KernelContext& context, Done done) const override {
    DeviceStep* step = context.step().device_step;
    if (step == nullptr) return done(send_input(key_, context));
    step->status_async([this, &context, done = std::move(done)](Status status) mutable {
      try {
        if (status.ok()) status = send_input(key_, context);
      } catch (...) {
        status = status_of_current_exception();
      }
      done(std::move(status));
    });
  }

 private:
  RendezvousKey key_;
};

}  // namespace detail

std::unique_ptr<AnyKernel> SendKernel::make(const KernelInit& init) {
  if (init.device.is_asynchronous) return std::make_unique<detail::SendWhenDone>(init);
  return std::make_unique<detail::SendNow>(init);
}

RecvKernel::RecvKernel(const KernelInit& init) : key(detail::key_of<Recv>(init)) {}

void RecvKernel::run_async(KernelContext& context, AsyncKernel::Done done) const {
  Rendezvous& rendezvous = detail::rendezvous_of(context);
  const Recv::Attrs& attrs = context.node().attrs_as<Recv>();
  RecvArgs args;
  args.memory = attrs.host_memory ? nullptr : context.device().memory;
  args.allocator = context.device().host_allocator;
  args.dtype = context.output_dtype(0);
  args.shape = attrs.shape;
  args.pushed = attrs.pushed;
  auto finish = [&context, done = std::move(done)](Status status, AnyTensor tensor, bool is_dead) mutable {
    if (status.ok()) {
      try {
        detail::take_received(context, std::move(tensor), is_dead);
      } catch (...) {
        status = status_of_current_exception();
      }
    }
    done(std::move(status));
  };
  const StepContext& step = context.step();
  args.cancellation = step.receive_cancellation;
  if (step.frame.empty() && step.iteration == 0) {
    rendezvous.recv_async(key, args, std::move(finish));
  } else {
    rendezvous.recv_async(key.in_frame(step.frame, step.iteration), args, std::move(finish));
  }
}

}  // namespace dflow
