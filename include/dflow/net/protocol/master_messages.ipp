#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/net/protocol/master_messages.hpp>

#include <cstdint>
#include <cstring>
#include <memory>

namespace dflow::net {

namespace detail {

/// The passes that may be switched off, in the order of the bits that say so.
inline constexpr bool PassOptions::*switchable_passes[] = {&PassOptions::constant_folding,
                                                           &PassOptions::common_subexpressions, &PassOptions::fusion,
                                                           &PassOptions::buffer_reuse};
/// Beside them, for the passes that are off unless they are asked for, and two more that are switched off.
inline constexpr std::uint8_t lowers_control_flow = 16, raises_control_flow = 32, joins_nothing = 64,
                              leaves_chains = 128;

void write_names(ByteWriter& out, const std::vector<std::string>& names) {
  out.count(names.size());
  for (const std::string& name : names) out.string(name);
}

std::vector<std::string> read_names(ByteReader& in) {
  std::vector<std::string> names;
  for (std::size_t i = in.count(1); i > 0; --i) names.emplace_back(in.string());
  return names;
}

/// Names of tasks or of containers: all are compared with all that a task knows. Errors: OutOfRange for too many.
std::vector<std::string> read_few_names(ByteReader& in) {
  std::vector<std::string> names;
  std::size_t i = in.count(1);
  if (i > NameList::max_names) throw_error(Status::out_of_range(str_cat(i, " names, more than ", NameList::max_names)));
  for (; i > 0; --i) names.emplace_back(in.string());
  return names;
}

using NamedTensors = std::vector<std::pair<std::string, PayloadTensor>>;

void write_feeds(ByteWriter& out, const NamedTensors& feeds) {
  out.count(feeds.size());
  for (const auto& [edge, tensor] : feeds) {
    out.string(edge);
    tensor.write(out);
  }
}

NamedTensors read_feeds(ByteReader& in) {
  NamedTensors feeds;
  for (std::size_t i = in.count(5); i > 0; --i) {
    std::string edge(in.string());
    feeds.emplace_back(std::move(edge), PayloadTensor::read(in));
  }
  return feeds;
}

/// The bytes of the elements if the type says how many they are, else the least that there can be.
std::uint64_t element_bytes(const TensorHead& head) {
  const std::uint64_t each = head.dtype == DType::string ? 1 : size_of(head.dtype);
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<std::uint64_t>(head.shape.num_elements()), each, &bytes)) {
    throw_error(Status::data_loss(str_cat("a tensor ", dtype_name(head.dtype), head.shape.to_string())));
  }
  return bytes;
}

}  // namespace detail

void CreateSession::write(ByteWriter& out) const {
  out.i64(time_left_ns);
  out.boolean(soft_placement);
  std::uint8_t off = 0, bit = 1;
  for (const auto pass : detail::switchable_passes) {
    if (!(passes.*pass)) off |= bit;
    bit = static_cast<std::uint8_t>(bit << 1);
  }
  if (passes.lower_control_flow) off |= detail::lowers_control_flow;
  if (passes.raise_control_flow) off |= detail::raises_control_flow;
  if (!passes.joint_kernels) off |= detail::joins_nothing;
  if (!passes.chains) off |= detail::leaves_chains;
  out.u8(off);
  detail::write_names(out, filters);
}

CreateSession CreateSession::read(ByteReader& in) {
  CreateSession create;
  create.time_left_ns = in.i64();
  create.soft_placement = in.boolean();
  std::uint8_t off = in.u8();
  create.passes.lower_control_flow = (off & detail::lowers_control_flow) != 0;
  create.passes.raise_control_flow = (off & detail::raises_control_flow) != 0;
  create.passes.joint_kernels = (off & detail::joins_nothing) == 0;
  create.passes.chains = (off & detail::leaves_chains) == 0;
  for (const auto pass : detail::switchable_passes) {
    create.passes.*pass = (off & 1) == 0;
    off = static_cast<std::uint8_t>(off >> 1);
  }
  create.filters = detail::read_few_names(in);
  return create;
}

void SessionVersion::write(ByteWriter& out) const {
  out.u64(session);
  out.u64(version);
}

SessionVersion SessionVersion::read(ByteReader& in) {
  SessionVersion version;
  version.session = in.u64();
  version.version = in.u64();
  return version;
}

void PayloadTensor::write(ByteWriter& out) const {
  head.write(out);
  out.varint(bytes);
}

PayloadTensor PayloadTensor::read(ByteReader& in) {
  PayloadTensor tensor;
  tensor.head = TensorHead::read(in);
  if (tensor.head.is_dead) throw_error(Status::data_loss("a dead tensor where a live one must be"));
  tensor.bytes = in.varint();
  const std::uint64_t least = detail::element_bytes(tensor.head);
  if (tensor.bytes == least || (tensor.head.dtype == DType::string && tensor.bytes > least && least != 0))
    return tensor;
  throw_error(Status::data_loss(str_cat("a tensor ", dtype_name(tensor.head.dtype), tensor.head.shape.to_string(),
                                        " of ", tensor.bytes, " bytes")));
}

void RunSession::write(ByteWriter& out) const {
  out.u64(session);
  out.i64(time_left_ns);
  out.boolean(trace);
  detail::write_feeds(out, feeds);
  detail::write_names(out, fetches);
  detail::write_names(out, targets);
}

RunSession RunSession::read(ByteReader& in) {
  RunSession run;
  run.session = in.u64();
  run.time_left_ns = in.i64();
  run.trace = in.boolean();
  run.feeds = detail::read_feeds(in);
  run.fetches = detail::read_names(in);
  run.targets = detail::read_names(in);
  return run;
}

void RunSessionReply::write(ByteWriter& out) const {
  run.write(out);
  out.count(fetches.size());
  for (const PayloadTensor& tensor : fetches) tensor.write(out);
}

RunSessionReply RunSessionReply::read(ByteReader& in) {
  RunSessionReply reply;
  reply.run = RunShareReply::read(in);
  for (std::size_t i = in.count(4); i > 0; --i) reply.fetches.push_back(PayloadTensor::read(in));
  return reply;
}

void BeginPartialRun::write(ByteWriter& out) const {
  out.u64(session);
  out.i64(time_left_ns);
  out.boolean(trace);
  detail::write_names(out, feeds);
  detail::write_names(out, fetches);
  detail::write_names(out, targets);
}

BeginPartialRun BeginPartialRun::read(ByteReader& in) {
  BeginPartialRun begin;
  begin.session = in.u64();
  begin.time_left_ns = in.i64();
  begin.trace = in.boolean();
  begin.feeds = detail::read_names(in);
  begin.fetches = detail::read_names(in);
  begin.targets = detail::read_names(in);
  return begin;
}

void PartialRunName::write(ByteWriter& out) const {
  out.u64(session);
  out.u64(run);
}

PartialRunName PartialRunName::read(ByteReader& in) {
  PartialRunName name;
  name.session = in.u64();
  name.run = in.u64();
  return name;
}

void ContinuePartialRun::write(ByteWriter& out) const {
  name.write(out);
  detail::write_feeds(out, feeds);
  detail::write_names(out, fetches);
  out.boolean(until_end);
}

ContinuePartialRun ContinuePartialRun::read(ByteReader& in) {
  ContinuePartialRun next;
  next.name = PartialRunName::read(in);
  next.feeds = detail::read_feeds(in);
  next.fetches = detail::read_names(in);
  next.until_end = in.boolean();
  return next;
}

void NameList::write(ByteWriter& out) const { detail::write_names(out, names); }
NameList NameList::read(ByteReader& in) { return {detail::read_few_names(in)}; }

void ResetCluster::write(ByteWriter& out) const {
  containers.write(out);
  filters.write(out);
}

ResetCluster ResetCluster::read(ByteReader& in) {
  ResetCluster reset;
  reset.containers = NameList::read(in);
  reset.filters = NameList::read(in);
  return reset;
}

std::pair<std::vector<PayloadTensor>, Payload> to_payload(std::vector<AnyTensor> tensors) {
  struct Owner {
    std::vector<AnyTensor> tensors;
    std::vector<std::string> strings;
  };
  const auto owner = std::make_shared<Owner>();
  owner->strings.reserve(tensors.size());  // what is referred to does not move
  std::vector<PayloadTensor> described;
  Payload payload;
  for (AnyTensor& tensor : tensors) {
    detail::check_travels(tensor);
    std::span<const std::byte> elements;
    if (tensor.dtype() == DType::string) {
      elements = detail::as_byte_span(owner->strings.emplace_back(encode_strings(tensor)));
    } else {
      elements = {static_cast<const std::byte*>(tensor.raw_data()), tensor.bytes()};
    }
    described.push_back({{false, tensor.dtype(), tensor.shape()}, elements.size()});
    if (!elements.empty()) payload.parts.push_back(elements);
  }
  owner->tensors = std::move(tensors);
  payload.owner = owner;
  return {std::move(described), std::move(payload)};
}

namespace detail {

/// A tensor that keeps the payload keeps no more than 8 times its size.
bool may_stay_in_payload(const PayloadTensor& described, std::span<const std::byte> elements, std::size_t whole) {
  constexpr std::size_t least = std::size_t{1} << 16, most_parts = 8;
  return elements.size() >= least && elements.size() >= whole / most_parts && described.head.dtype != DType::string &&
         reinterpret_cast<std::uintptr_t>(elements.data()) % size_of(described.head.dtype) == 0;
}

}  // namespace detail

AnyTensor take_from_payload(const PayloadTensor& described, std::span<const std::byte>& payload,
                            const std::shared_ptr<std::vector<std::byte>>& owner) {
  if (described.bytes > payload.size()) throw_error(Status::data_loss("a tensor whose elements are not all there"));
  const std::span<const std::byte> elements = payload.first(static_cast<std::size_t>(described.bytes));
  payload = payload.subspan(elements.size());
  if (owner != nullptr && detail::may_stay_in_payload(described, elements, owner->size())) {
    std::byte* const own = owner->data() + (elements.data() - owner->data());
    AnyTensor there =
        AnyTensor::adopt(described.head.dtype, described.head.shape, own, elements.size(), [kept = owner] {});
    check_elements(there);
    return there;
  }
  AnyTensor tensor(described.head.dtype, described.head.shape);
  if (tensor.dtype() == DType::string) {
    decode_strings({reinterpret_cast<const char*>(elements.data()), elements.size()}, tensor);
    return tensor;
  }
  if (!elements.empty()) std::memcpy(tensor.raw_data(), elements.data(), elements.size());
  check_elements(tensor);
  return tensor;
}

}  // namespace dflow::net
