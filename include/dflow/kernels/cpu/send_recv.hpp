#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/ops/send_recv/send_recv.hpp>

#include <memory>
#include <utility>

namespace dflow {

/// The same code for every element type: a tensor passes through as it is.
template <class T>
struct Kernel<Send, Cpu, T> {
  explicit Kernel(const KernelInit& init)
      : key(init.node.attrs_as<Send>().send_device, init.node.attrs_as<Send>().send_device_incarnation,
            init.node.attrs_as<Send>().recv_device, init.node.attrs_as<Send>().tensor_name) {}
  RendezvousKey key;

  double cost_ns(const KernelInit&) const { return 500; }
  void operator()(KernelContext& context) const {
    Rendezvous* rendezvous = context.step().rendezvous;
    if (rendezvous == nullptr) throw Error(internal("a Send runs in a step without rendezvous"));
    throw_if_error(rendezvous->send(key, context.input(0), false));
  }
};

template <class T>
struct Kernel<Recv, Cpu, T> {
  explicit Kernel(const KernelInit& init)
      : key(init.node.attrs_as<Recv>().send_device, init.node.attrs_as<Recv>().send_device_incarnation,
            init.node.attrs_as<Recv>().recv_device, init.node.attrs_as<Recv>().tensor_name) {}
  RendezvousKey key;

  void run_async(KernelContext& context, AsyncKernel::Done done) const {
    Rendezvous* rendezvous = context.step().rendezvous;
    if (rendezvous == nullptr) return done(internal("a Recv runs in a step without rendezvous"));
    rendezvous->recv_async(key, [&context, done = std::move(done)](Status status, AnyTensor tensor, bool) mutable {
      if (status.ok()) context.set_output(0, std::move(tensor));
      done(std::move(status));
    });
  }
};

}  // namespace dflow
