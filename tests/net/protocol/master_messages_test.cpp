#include <dflow/net/protocol/master_messages.hpp>

#include <catch2/catch.hpp>
#include <dflow/core/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "support/errors.hpp"

namespace net = dflow::net;
using dflow::AnyTensor;
using dflow::Code;
using dflow::DType;
using dflow::Shape;
using dflow::Tensor;

namespace {

/// A message is written as it was read. A message that is cut or has one byte too many is not a message.
template <class Message>
Message master_message(const Message& message) {
  const std::string body = net::to_body(message);
  for (std::size_t size = 0; size < body.size(); ++size) {
    INFO("the first " << size << " of " << body.size() << " bytes");
    CHECK_THROWS_AS(net::from_body<Message>(body.substr(0, size)), dflow::Error);
  }
  CHECK_THROWS_AS(net::from_body<Message>(body + '\0'), dflow::Error);
  const Message read = net::from_body<Message>(body);
  CHECK(net::to_body(read) == body);
  return read;
}

}  // namespace

TEST_CASE("messages to a master come back as they were sent") {
  net::CreateSession create;
  create.time_left_ns = 5;
  create.soft_placement = true;
  create.passes = {.constant_folding = true,
                   .common_subexpressions = false,
                   .fusion = true,
                   .chains = false,
                   .buffer_reuse = false,
                   .joint_kernels = false,
                   .lower_control_flow = false,
                   .raise_control_flow = true};
  create.filters = {"/job:ps", "/job:worker/task:1"};
  const net::CreateSession got = master_message(create);
  CHECK(got.time_left_ns == 5);
  CHECK(got.soft_placement);
  CHECK(got.passes.constant_folding);
  CHECK_FALSE(got.passes.common_subexpressions);
  CHECK(got.passes.fusion);
  CHECK_FALSE(got.passes.buffer_reuse);
  CHECK_FALSE(got.passes.joint_kernels);
  CHECK_FALSE(got.passes.lower_control_flow);
  CHECK(got.passes.raise_control_flow);
  CHECK_FALSE(got.passes.chains);
  CHECK(got.filters == create.filters);
  CHECK(master_message(net::SessionVersion{3, 9}) == net::SessionVersion{3, 9});
  const net::NameList names{{"", "a"}};
  CHECK(master_message(names) == names);
  const net::ResetCluster reset{{{"", "a"}}, {{"/job:ps"}}};
  CHECK(master_message(reset) == reset);
  net::RunSession run;
  run.session = 7;
  run.time_left_ns = 8;
  run.trace = true;
  run.feeds = {{"x:1", {{false, DType::float32, Shape({2})}, 8}}};
  run.fetches = {"y"};
  run.targets = {"a", "b"};
  const net::RunSession ran = master_message(run);
  CHECK(ran.feeds.at(0).first == "x:1");
  CHECK(ran.feeds.at(0).second.head == run.feeds[0].second.head);
  CHECK(ran.targets == run.targets);
  const net::BeginPartialRun begin{7, 8, true, {"x:1", "u"}, {"y"}, {"a", "b"}};
  CHECK(master_message(begin) == begin);
  CHECK(master_message(net::PartialRunName{3, 9}) == net::PartialRunName{3, 9});
  net::ContinuePartialRun next;
  next.name = {7, 4};
  next.feeds = run.feeds;
  next.fetches = {"y", "z"};
  next.until_end = true;
  const net::ContinuePartialRun continued = master_message(next);
  CHECK(continued.name == next.name);
  CHECK(continued.feeds.at(0).second.bytes == 8);
  CHECK(continued.fetches == next.fetches);
  CHECK(continued.until_end);
  net::RunSessionReply reply;
  reply.run.is_traced = true;
  reply.run.stats.nodes.push_back({"n", "op", "/cpu:0", 4, 5, 6, 7, "[2]"});
  reply.fetches = {{{false, DType::string, Shape({2})}, 5}, {{false, DType::int32, Shape()}, 4}};
  CHECK(master_message(reply).fetches.at(1).bytes == 4);
}

TEST_CASE("tensors of every element type go as a payload and come back bit by bit") {
  std::vector<AnyTensor> tensors{Tensor<std::string>({2}, {"a", std::string("b\0c", 3)})};
  dflow::for_each_type<dflow::AllTypes>([&]<class T>() {
    for (const Shape& shape : {Shape(), Shape({0}), Shape({3, 2})}) {
      tensors.push_back(AnyTensor::zeros(dflow::dtype_of<T>, shape));
    }
  });
  const auto [described, payload] = net::to_payload(tensors);
  std::vector<std::byte> bytes;
  for (const auto part : payload.parts) bytes.insert(bytes.end(), part.begin(), part.end());
  std::span<const std::byte> rest(bytes);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    CHECK(dflow::bitwise_equal(net::take_from_payload(master_message(described[i]), rest), tensors[i]));
  }
  CHECK(rest.empty());
  CHECK_THROWS_AS(net::take_from_payload(described[0], rest), dflow::Error);
  CHECK(code_of([] { net::to_payload({AnyTensor()}); }) == Code::invalid_argument);
}

TEST_CASE("large tensors of a payload stay in its memory, and small ones do not keep it") {
  dflow::Tensor<float> large(dflow::Shape{1 << 18}), half(dflow::Shape{1 << 17});
  for (float& each : large.span()) each = 1.5f;
  for (float& each : half.span()) each = 2.5f;
  const dflow::Tensor<float> small(3.0f);
  const dflow::Tensor<bool> odd(true);
  const std::vector<AnyTensor> tensors{large, small, half, odd, half};
  const auto [described, payload] = net::to_payload(tensors);
  auto owner = std::make_shared<std::vector<std::byte>>();
  for (const auto part : payload.parts) owner->insert(owner->end(), part.begin(), part.end());
  std::span<const std::byte> rest(*owner);
  const auto is_in_payload = [&](const AnyTensor& tensor) {
    const auto* const data = static_cast<const std::byte*>(tensor.raw_data());
    return data >= owner->data() && data < owner->data() + owner->size();
  };
  std::vector<AnyTensor> taken;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    taken.push_back(net::take_from_payload(described[i], rest, owner));
    CHECK(dflow::bitwise_equal(taken[i], tensors[i]));
  }
  CHECK(rest.empty());
  CHECK(is_in_payload(taken[0]));
  CHECK_FALSE(is_in_payload(taken[1]));
  CHECK(is_in_payload(taken[2]));
  CHECK_FALSE(is_in_payload(taken[3]));
  CHECK_FALSE(is_in_payload(taken[4]));  // it begins at an odd byte
  const std::weak_ptr<std::vector<std::byte>> seen = owner;
  owner.reset();
  taken.erase(taken.begin());
  CHECK_FALSE(seen.expired());
  CHECK(taken[1].span<float>()[0] == 2.5f);
  taken.erase(taken.begin() + 1);
  CHECK(seen.expired());
}

TEST_CASE("tensors that are an eighth of a payload each, of 64 KiB, stay in its memory, and smaller ones do not") {
  for (const std::int64_t size : {std::int64_t{1} << 16, (std::int64_t{1} << 16) - 1}) {
    const std::vector<AnyTensor> tensors(8, dflow::Tensor<std::uint8_t>::full({size}, 7));
    const auto [described, payload] = net::to_payload(tensors);
    auto owner = std::make_shared<std::vector<std::byte>>();
    for (const auto part : payload.parts) owner->insert(owner->end(), part.begin(), part.end());
    std::span<const std::byte> rest(*owner);
    for (const net::PayloadTensor& each : described) {
      const auto* const at = rest.data();
      CHECK((net::take_from_payload(each, rest, owner).raw_data() == at) == (size == std::int64_t{1} << 16));
    }
  }
}

TEST_CASE("names of tasks and containers, which are compared with all that there are, are so many at most") {
  net::NameList most, more;
  most.names.resize(net::NameList::max_names);
  more.names.resize(net::NameList::max_names + 1);
  const auto code_of_reading = [](const auto& message) {
    using Message = std::decay_t<decltype(message)>;
    return status_of([&] { static_cast<void>(net::from_body<Message>(net::to_body(message))); }).code();
  };
  net::CreateSession create;
  create.filters = most.names;
  CHECK(code_of_reading(most) == Code::ok);
  CHECK(code_of_reading(net::ResetCluster{most, most}) == Code::ok);
  CHECK(code_of_reading(create) == Code::ok);
  create.filters = more.names;
  CHECK(code_of_reading(more) == Code::out_of_range);
  CHECK(code_of_reading(net::ResetCluster{more, {}}) == Code::out_of_range);
  CHECK(code_of_reading(net::ResetCluster{{}, more}) == Code::out_of_range);
  CHECK(code_of_reading(create) == Code::out_of_range);
}

TEST_CASE("what a message says of its payload is not believed") {
  const auto written = [](DType dtype, std::initializer_list<std::uint64_t> dims, std::uint64_t bytes) {
    std::string text;
    dflow::ByteWriter out(text);
    out.boolean(false);
    out.u8(static_cast<std::uint8_t>(dtype));
    out.u8(static_cast<std::uint8_t>(dims.size()));
    for (const std::uint64_t dim : dims) out.varint(dim);
    out.varint(bytes);
    return text;
  };
  const auto read = [](const std::string& text) { return net::from_body<net::PayloadTensor>(text); };
  CHECK(read(written(DType::float32, {2, 3}, 24)).bytes == 24);
  CHECK(code_of([&] { read(written(DType::float32, {2, 3}, 25)); }) == Code::data_loss);
  CHECK(code_of([&] { read(written(DType::float64, {std::uint64_t{1} << 62}, 0)); }) == Code::data_loss);
  CHECK(code_of([&] { read(written(DType::string, {5}, 4)); }) == Code::data_loss);
  CHECK(code_of([&] { read(written(DType::string, {0}, 4)); }) == Code::data_loss);
  CHECK(read(written(DType::string, {5}, 5)).bytes == 5);
  CHECK(code_of([&] { read(std::string(1, '\1') + '\0'); }) == Code::data_loss);  // dead
  // A byte that is neither true nor false.
  const std::byte two{2};
  std::span<const std::byte> rest(&two, 1);
  CHECK(code_of([&] { net::take_from_payload(read(written(DType::boolean, {1}, 1)), rest); }) == Code::data_loss);
}
