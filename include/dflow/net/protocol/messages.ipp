#pragma once

#include <dflow/base/checked.hpp>
#include <dflow/base/printable.hpp>
#include <dflow/core/tensor.hpp>
#include <dflow/graph/graph_def_archive.hpp>
#include <dflow/net/protocol/messages.hpp>

#include <algorithm>
#include <cstring>
#include <span>

namespace dflow::net {

namespace detail {

inline constexpr std::size_t max_text_bytes = 1 << 20;

/// A text of a status, cut where it is too long to travel.
std::string_view cut(std::string_view text) { return text.substr(0, max_text_bytes); }

std::span<const std::byte> as_byte_span(std::string_view text) noexcept {
  return std::as_bytes(std::span(text.data(), text.size()));
}

void write_shape(ByteWriter& out, const Shape& shape) {
  out.u8(static_cast<std::uint8_t>(shape.rank()));
  for (const std::int64_t dim : shape.dims()) out.varint(static_cast<std::uint64_t>(dim));
}

Shape read_shape(ByteReader& in) {
  std::int64_t dims[max_rank];
  const std::uint8_t rank = in.u8();
  if (rank > max_rank) throw_error(Status::data_loss(str_cat("a tensor of rank ", int{rank})));
  for (std::uint8_t i = 0; i < rank; ++i) {
    const std::uint64_t dim = in.varint();
    if (dim > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      throw_error(Status::data_loss(str_cat("a tensor of extent ", dim)));
    }
    dims[i] = static_cast<std::int64_t>(dim);
  }
  try {
    return Shape(std::span<const std::int64_t>(dims, rank));
  } catch (const Error& error) {
    throw_error(Status::data_loss(std::string(error.status().message())));
  }
}

/// The type of a tensor that travels: a type with elements, so no handle.
DType read_dtype(ByteReader& in) {
  const std::uint8_t number = in.u8();
  const auto dtype = dtype_from_number(number);
  if (!dtype || (!is_plain(*dtype) && *dtype != DType::string)) {
    throw_error(Status::data_loss(str_cat(int{number}, " is no element type of a tensor that travels")));
  }
  return *dtype;
}

void check_travels(const AnyTensor& tensor) {
  if (tensor.is_initialized() && (is_plain(tensor.dtype()) || tensor.dtype() == DType::string)) return;
  throw_error(Status::invalid_argument(str_cat(tensor.is_initialized() ? dtype_name(tensor.dtype()) : "an empty tensor",
                                               " cannot be sent to another task")));
}

}  // namespace detail

void write_status(ByteWriter& out, const Status& status) {
  out.u8(static_cast<std::uint8_t>(status.code()));
  if (status.ok()) return;
  for (const std::string_view text : {status.message(), status.op(), status.node(), status.device(), status.task()}) {
    out.string(detail::cut(text));
  }
}

Status read_status(ByteReader& in) {
  const Code code = code_from_number(in.u8());
  if (code == Code::ok) return {};
  Status status(code, std::string(in.string()));
  const std::string_view op = in.string(), node = in.string();
  if (!op.empty() || !node.empty()) status = status.with_node(op, node);
  if (const std::string_view device = in.string(); !device.empty()) status = status.with_device(device);
  if (const std::string_view task = in.string(); !task.empty()) status = status.with_task(task);
  return status;
}

void write_tensor(ByteWriter& out, const AnyTensor& tensor) {
  detail::check_travels(tensor);
  TensorHead{false, tensor.dtype(), tensor.shape()}.write(out);
  if (tensor.dtype() == DType::string) {
    out.string(encode_strings(tensor));
  } else {
    out.blob({static_cast<const std::byte*>(tensor.raw_data()), tensor.bytes()});
  }
}

AnyTensor read_tensor(ByteReader& in) {
  const TensorHead head = TensorHead::read(in);
  if (head.is_dead) throw_error(Status::data_loss("a dead tensor where a live one must be"));
  const std::span<const std::byte> elements = in.blob();
  if (head.dtype == DType::string) {
    // Each takes a byte at least: none is allocated before it is known to have come.
    if (static_cast<std::uint64_t>(head.shape.num_elements()) > elements.size()) {
      throw_error(Status::data_loss("a tensor of strings has fewer elements than its shape says"));
    }
    AnyTensor tensor(head.dtype, head.shape);
    decode_strings({reinterpret_cast<const char*>(elements.data()), elements.size()}, tensor);
    return tensor;
  }
  if (num_bytes(head.dtype, head.shape) != elements.size()) {
    throw_error(Status::data_loss(
        str_cat("a tensor ", dtype_name(head.dtype), head.shape.to_string(), " of ", elements.size(), " bytes")));
  }
  AnyTensor tensor(head.dtype, head.shape);
  if (!elements.empty()) std::memcpy(tensor.raw_data(), elements.data(), elements.size());
  check_elements(tensor);
  return tensor;
}

std::string encode_strings(const AnyTensor& tensor) {
  std::string bytes;
  ByteWriter out(bytes);
  for (const std::string& text : tensor.span<std::string>()) out.string(text);
  return bytes;
}

void decode_strings(std::string_view bytes, AnyTensor& tensor) {
  ByteReader in(bytes);
  for (std::string& text : tensor.span<std::string>()) text = in.string();
  in.expect_end();
}

void check_elements(const AnyTensor& tensor) {
  if (tensor.dtype() != DType::boolean) return;
  const auto* bytes = static_cast<const unsigned char*>(tensor.raw_data());
  if (std::all_of(bytes, bytes + tensor.bytes(), [](unsigned char byte) { return byte <= 1; })) return;
  throw_error(Status::data_loss("a truth value that is neither 0 nor 1"));
}

void TensorHead::write(ByteWriter& out) const {
  out.boolean(is_dead);
  if (is_dead) return;
  out.u8(static_cast<std::uint8_t>(dtype));
  detail::write_shape(out, shape);
}

TensorHead TensorHead::read(ByteReader& in) {
  TensorHead head;
  head.is_dead = in.boolean();
  if (head.is_dead) return head;
  head.dtype = detail::read_dtype(in);
  head.shape = detail::read_shape(in);
  return head;
}

void DeviceList::write(ByteWriter& out) const {
  out.count(devices.size());
  for (const DeviceInfo& device : devices) {
    out.string(device.name);
    out.string(device.type);
    out.u64(device.incarnation);
    out.string(device.memory);
    out.count(device.attributes.size());
    for (const auto& [key, value] : device.attributes) {
      out.string(key);
      out.string(value);
    }
  }
}

DeviceList DeviceList::read(ByteReader& in) {
  DeviceList list;
  for (std::size_t i = in.count(12); i > 0; --i) {
    DeviceInfo& device = list.devices.emplace_back();
    device.name = in.string();
    device.type = in.string();
    device.incarnation = in.u64();
    device.memory = in.string();
    for (std::size_t a = in.count(2); a > 0; --a) {
      std::string key(in.string());
      device.attributes.insert_or_assign(std::move(key), std::string(in.string()));
    }
  }
  return list;
}

void ClusterTaskList::write(ByteWriter& out) const {
  out.varint(num_tasks);
  out.count(tasks.size());
  for (const Task& task : tasks) {
    out.string(task.name);
    out.string(task.address);
  }
}

ClusterTaskList ClusterTaskList::read(ByteReader& in) {
  ClusterTaskList list;
  list.num_tasks = in.varint();
  const std::size_t count = in.count(2);
  if (count > max_listed) throw_error(Status::out_of_range(str_cat("a list of ", count, " tasks of a cluster")));
  list.tasks.resize(count);
  for (Task& task : list.tasks) {
    for (std::string* const text : {&task.name, &task.address}) {
      *text = in.string();
      if (text->size() > max_text_bytes)
        throw_error(Status::out_of_range(str_cat("a task of a cluster with a text of ", text->size(), " bytes")));
    }
  }
  return list;
}

void ShareName::write(ByteWriter& out) const {
  out.u64(session);
  out.u64(share);
}

ShareName ShareName::read(ByteReader& in) {
  ShareName name;
  name.session = in.u64();
  name.share = in.u64();
  return name;
}

void SharePartitions::write(ByteWriter& out) const {
  out.count(partitions.size());
  for (const Partition& partition : partitions) {
    out.string(partition.device);
    out.count(partition.part.targets.size());
    for (const std::string& target : partition.part.targets) out.string(target);
    out.string(to_binary(partition.part.graph));
  }
}

SharePartitions SharePartitions::read(ByteReader& in) {
  SharePartitions share;
  for (std::size_t i = in.count(3); i > 0; --i) {
    Partition& partition = share.partitions.emplace_back();
    partition.device = in.string();
    for (std::size_t t = in.count(1); t > 0; --t) partition.part.targets.emplace_back(in.string());
    partition.part.graph = from_binary(in.string());
  }
  return share;
}

namespace detail {

void write_key(ByteWriter& out, const std::string& key) {
  if (key.size() > max_key_bytes) {
    throw_error(
        Status::invalid_argument(str_cat("a tensor cannot be sent under a key of ", key.size(), " bytes, more than ",
                                         max_key_bytes, ": '", printable(key, 200), "'")));
  }
  out.string(key);
}

std::string read_key(ByteReader& in) {
  const std::string_view key = in.string();
  if (key.size() > max_key_bytes) {
    throw_error(Status::out_of_range(str_cat("a key of ", key.size(), " bytes, more than ", max_key_bytes)));
  }
  return std::string(key);
}

}  // namespace detail

void PushedTensor::write(ByteWriter& out) const {
  detail::write_key(out, key);
  out.boolean(is_dead);
  if (!is_dead) write_tensor(out, tensor);
}

PushedTensor PushedTensor::read(ByteReader& in) {
  PushedTensor pushed;
  pushed.key = detail::read_key(in);
  pushed.is_dead = in.boolean();
  if (!pushed.is_dead) pushed.tensor = read_tensor(in);
  return pushed;
}

void PushTensor::write(ByteWriter& out) const {
  out.u64(step);
  tensor.write(out);
}

std::pair<std::uint64_t, std::uint64_t> PushTensor::step_and_strings(std::string_view body) {
  ByteReader in(body);
  const std::uint64_t step = in.u64();
  static_cast<void>(detail::read_key(in));
  if (in.boolean()) return {step, 0};  // a dead tensor
  const TensorHead head = TensorHead::read(in);
  if (head.is_dead || head.dtype != DType::string) return {step, 0};
  return {step, std::min<std::uint64_t>(static_cast<std::uint64_t>(head.shape.num_elements()), body.size())};
}

PushTensor PushTensor::read(ByteReader& in) {
  PushTensor push;
  push.step = in.u64();
  push.tensor = PushedTensor::read(in);
  return push;
}

namespace detail {

void write_pushed(ByteWriter& out, const std::vector<PushedTensor>& pushed) {
  out.count(pushed.size());
  for (const PushedTensor& tensor : pushed) tensor.write(out);
}

std::vector<PushedTensor> read_pushed(ByteReader& in) {
  std::vector<PushedTensor> pushed;
  for (std::size_t i = in.count(2); i > 0; --i) pushed.push_back(PushedTensor::read(in));
  return pushed;
}

}  // namespace detail

void RunShare::write(ByteWriter& out) const {
  name.write(out);
  out.u64(step);
  out.i64(time_left_ns);
  out.boolean(trace);
  detail::write_pushed(out, pushed);
}

RunShare RunShare::read(ByteReader& in) {
  RunShare run;
  run.name = ShareName::read(in);
  run.step = in.u64();
  run.time_left_ns = in.i64();
  run.trace = in.boolean();
  run.pushed = detail::read_pushed(in);
  return run;
}

void RunShareReply::write(ByteWriter& out) const {
  out.i64(came_ns);
  out.i64(answered_ns);
  detail::write_pushed(out, pushed);
  out.boolean(is_traced);
  if (!is_traced) return;
  out.i64(began_ns);
  out.u64(stats.step_id);
  out.i64(stats.total_ns);
  out.count(stats.nodes.size());
  for (const NodeStats& node : stats.nodes) {
    out.string(node.node);
    out.string(node.op);
    out.string(node.device);
    out.i64(node.start_ns);
    out.i64(node.end_ns);
    out.i32(node.thread);
    out.i64(node.output_bytes);
    out.string(node.output_shapes);
  }
}

RunShareReply RunShareReply::read(ByteReader& in) {
  RunShareReply reply;
  reply.came_ns = in.i64();
  reply.answered_ns = in.i64();
  reply.pushed = detail::read_pushed(in);
  reply.is_traced = in.boolean();
  if (!reply.is_traced) return reply;
  reply.began_ns = in.i64();
  reply.stats.step_id = in.u64();
  reply.stats.total_ns = in.i64();
  for (std::size_t i = in.count(32); i > 0; --i) {
    NodeStats& node = reply.stats.nodes.emplace_back();
    node.node = in.string();
    node.op = in.string();
    node.device = in.string();
    node.start_ns = in.i64();
    node.end_ns = in.i64();
    node.thread = in.i32();
    node.output_bytes = in.i64();
    node.output_shapes = in.string();
  }
  return reply;
}

void CancelStep::write(ByteWriter& out) const {
  out.u64(step);
  write_status(out, why);
}

CancelStep CancelStep::read(ByteReader& in) {
  CancelStep cancel;
  cancel.step = in.u64();
  cancel.why = read_status(in);
  return cancel;
}

void ReceiveTensor::write(ByteWriter& out) const {
  out.u64(step);
  detail::write_key(out, key);
}

ReceiveTensor ReceiveTensor::read(ByteReader& in) {
  ReceiveTensor receive;
  receive.step = in.u64();
  receive.key = detail::read_key(in);
  return receive;
}

}  // namespace dflow::net
