#pragma once

#include <dflow/base/status.hpp>
#include <dflow/net/protocol/identity.hpp>

#include <algorithm>

namespace dflow::net {

DFLOW_INLINE void TaskIdentity::write(ByteWriter& out) const {
  out.string(cluster);
  out.string(task);
  out.u64(incarnation);
  out.u64(op_fingerprint);
}

DFLOW_INLINE TaskIdentity TaskIdentity::read(ByteReader& in) {
  TaskIdentity identity;
  for (std::string* name : {&identity.cluster, &identity.task}) {
    const std::string_view text = in.string();
    if (text.size() > max_name_bytes) throw_error(out_of_range(str_cat("a task's name of ", text.size(), " bytes")));
    // Names go into logs before anybody has proved anything.
    if (std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; })) {
      throw_error(data_loss("a task's name with control characters"));
    }
    *name = text;
  }
  identity.incarnation = in.u64();
  identity.op_fingerprint = in.u64();
  return identity;
}

}  // namespace dflow::net
