#pragma once

/// Bodies of the core: a part of <dflow/src/core.hpp>.

#include <dflow/runtime/call_kernel.ipp>
#include <dflow/runtime/cpu_device.ipp>
#include <dflow/runtime/default_devices.ipp>
#include <dflow/runtime/device.ipp>
#include <dflow/runtime/frames/frame_plan.ipp>
#include <dflow/runtime/frames/frame_run.ipp>
#include <dflow/runtime/frames/frames_kernel.ipp>
#include <dflow/runtime/local_rendezvous.ipp>
#include <dflow/runtime/stats_collector.ipp>
#include <dflow/runtime/step.ipp>
#include <dflow/runtime/step_handle.ipp>
#include <dflow/runtime/unit_queue.ipp>
