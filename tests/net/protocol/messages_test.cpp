#include <dflow/net/protocol/messages.hpp>

#include <catch2/catch.hpp>
#include <dflow/core/tensor.hpp>

#include <cstdint>
#include <limits>
#include <string>

namespace net = dflow::net;
using dflow::AnyTensor;
using dflow::Code;
using dflow::DType;
using dflow::Shape;
using dflow::Tensor;

namespace {

template <class Message>
Message there_and_back(const Message& message) {
  return net::from_body<Message>(net::to_body(message));
}

/// No proper beginning of a message is one, nor is one with a byte too many.
template <class Message>
void check_cuts(const Message& message) {
  const std::string body = net::to_body(message);
  for (std::size_t size = 0; size < body.size(); ++size) {
    INFO("the first " << size << " of " << body.size() << " bytes");
    CHECK_THROWS_AS(net::from_body<Message>(body.substr(0, size)), dflow::Error);
  }
  CHECK_THROWS_AS(net::from_body<Message>(body + '\0'), dflow::Error);
}

net::DeviceList two_devices() {
  net::DeviceList list;
  list.devices.push_back({"/job:ps/replica:0/task:1/device:CPU:0", "CPU", 7, "", {{"threads", "2"}}});
  list.devices.push_back({"/job:ps/replica:0/task:1/device:GPU:0", "GPU", 7, "GPU:0", {}});
  return list;
}

net::SharePartitions one_part() {
  dflow::NodeDef x;
  x.name = "x";
  x.op = "Const";
  x.types = {{"dtype", DType::float32}};
  x.attrs = {{"value", AnyTensor(Tensor<float>({2}, {1, 2}))}};
  dflow::NodeDef both;
  both.name = "a + b";
  both.op = "Identity";
  both.inputs = {"x"};
  net::SharePartitions share;
  net::SharePartitions::Partition& part = share.partitions.emplace_back();
  part.device = "/job:ps/replica:0/task:1/device:CPU:0";
  part.part.graph.nodes = {x, both};
  part.part.targets = {"a + b"};
  return share;
}

}  // namespace

TEST_CASE("requests of shares and tensors need ops, and no others do") {
  for (int number = 0; number <= 30; ++number) {
    INFO("method " << number);
    CHECK(net::needs_ops(static_cast<net::Method>(number)) == (number >= 1 && number <= 8));
  }
}

TEST_CASE("messages come back as they were sent") {
  CHECK(there_and_back(two_devices()) == two_devices());
  CHECK(there_and_back(net::ShareName{3, 9}) == net::ShareName{3, 9});
  CHECK(there_and_back(one_part()) == one_part());
  const net::ClusterTaskList cluster{7, {{"/job:ps/replica:0/task:0", "a:1"}, {"/job:ps/replica:0/task:1", "b:1"}}};
  CHECK(there_and_back(cluster) == cluster);
  const net::ReceiveTensor receive{~std::uint64_t{0}, "a;0;b;c;:0"};
  CHECK(there_and_back(receive) == receive);
  const net::TensorHead head{false, DType::bfloat16, Shape({2, 0, 5})};
  CHECK(there_and_back(head) == head);
  const net::TensorHead dead{true, DType::invalid, {}};
  CHECK(there_and_back(dead) == dead);
}

TEST_CASE("a run comes with its feeds") {
  net::RunShare run{{1, 2}, 3, 4'000'000'000, true, {}};
  run.pushed.push_back({"feed", false, Tensor<std::string>({2}, {"a", std::string("b\0c", 3)})});
  run.pushed.push_back({"dead", true, {}});
  const net::RunShare got = there_and_back(run);
  CHECK(got.name == run.name);
  CHECK(got.step == 3);
  CHECK(got.time_left_ns == 4'000'000'000);
  CHECK(got.trace);
  REQUIRE(got.pushed.size() == 2);
  CHECK(got.pushed[0].key == "feed");
  CHECK(dflow::bitwise_equal(got.pushed[0].tensor, run.pushed[0].tensor));
  CHECK(got.pushed[1].is_dead);
  CHECK_FALSE(got.pushed[1].tensor.is_initialized());
}

TEST_CASE("tensors of every element type come back bit by bit") {
  dflow::for_each_type<dflow::AllTypes>([]<class T>() {
    for (const Shape& shape : {Shape(), Shape({0}), Shape({3, 2})}) {
      AnyTensor tensor = AnyTensor::zeros(dflow::dtype_of<T>, shape);
      if (shape.num_elements() > 1) tensor.span<T>()[1] = T{};
      std::string bytes;
      dflow::ByteWriter out(bytes);
      net::write_tensor(out, tensor);
      dflow::ByteReader in(bytes);
      INFO(dflow::dtype_name(dflow::dtype_of<T>) << shape.to_string());
      CHECK(dflow::bitwise_equal(net::read_tensor(in), tensor));
      CHECK(in.at_end());
    }
  });
}

TEST_CASE("a status comes back with its context") {
  const dflow::Status status =
      dflow::Status::data_loss("gone").with_node("MatMul", "layer/a + b").with_device("/cpu:0").with_task("/job:ps");
  const net::CancelStep got = there_and_back(net::CancelStep{5, status});
  CHECK(got.step == 5);
  CHECK(got.why == status);
  CHECK(got.why.op() == "MatMul");
  CHECK(got.why.node() == "layer/a + b");
  CHECK(got.why.device() == "/cpu:0");
  CHECK(got.why.task() == "/job:ps");
  CHECK(there_and_back(net::CancelStep{5, {}}).why.ok());
}

TEST_CASE("statistics come back") {
  net::RunShareReply reply{.came_ns = -5, .answered_ns = 6};
  CHECK(there_and_back(reply).came_ns == -5);
  CHECK(there_and_back(reply).answered_ns == 6);
  CHECK_FALSE(there_and_back(reply).is_traced);
  CHECK(there_and_back(reply).pushed.empty());
  reply.pushed.push_back({"z", false, Tensor<float>({2}, {1, 2})});
  reply.pushed.push_back({"dead", true, {}});
  reply.is_traced = true;
  reply.began_ns = 2;
  reply.stats.step_id = 1;
  reply.stats.total_ns = 3;
  reply.stats.nodes.push_back({"n", "op", "/cpu:0", 4, 5, 6, 7, "[2]"});
  const net::RunShareReply got = there_and_back(reply);
  REQUIRE(got.pushed.size() == 2);
  CHECK(got.pushed[0].key == "z");
  CHECK(dflow::bitwise_equal(got.pushed[0].tensor, reply.pushed[0].tensor));
  CHECK(got.pushed[1].is_dead);
  REQUIRE(got.stats.nodes.size() == 1);
  CHECK(got.began_ns == 2);
  CHECK(got.stats.total_ns == 3);
  CHECK(got.stats.nodes[0].node == "n");
  CHECK(got.stats.nodes[0].output_shapes == "[2]");
  CHECK(got.stats.nodes[0].thread == 6);
}

TEST_CASE("a message that is cut or too long is none") {
  check_cuts(two_devices());
  check_cuts(net::ShareName{3, 9});
  check_cuts(one_part());
  check_cuts(net::ReceiveTensor{1, "key"});
  check_cuts(net::TensorHead{false, DType::float32, Shape({2, 3})});
  check_cuts(net::CancelStep{5, dflow::Status::aborted("why")});
  net::RunShare run{{1, 2}, 3, 4, false, {}};
  run.pushed.push_back({"feed", false, Tensor<float>({2}, {1, 2})});
  check_cuts(run);
  net::RunShareReply reply{.came_ns = 1, .answered_ns = 2};
  reply.pushed = run.pushed;
  check_cuts(reply);
}

TEST_CASE("the key of a tensor that travels has a limit, when it is written and when it is read") {
  const auto written = [](std::size_t size) {
    return net::to_body(net::PushTensor{1, {std::string(size, 'k'), false, Tensor<float>(1.0f)}});
  };
  CHECK(net::from_body<net::PushTensor>(written(net::max_key_bytes)).tensor.key.size() == net::max_key_bytes);
  CHECK_THROWS_WITH(written(net::max_key_bytes + 1),
                    Catch::Contains("under a key of 65537 bytes, more than 65536: 'kkk"));
  CHECK_THROWS_WITH(net::to_body(net::ReceiveTensor{1, std::string(net::max_key_bytes + 1, 'k')}),
                    Catch::Contains("under a key of 65537 bytes"));
  std::string received;
  dflow::ByteWriter out(received);
  out.u64(1);
  out.string(std::string(15 << 20, 'k'));
  CHECK_THROWS_WITH(net::from_body<net::ReceiveTensor>(received),
                    Catch::Contains("OUT_OF_RANGE: a key of 15728640 bytes, more than 65536"));
  CHECK_THROWS_WITH(net::from_body<net::PushTensor>(received + std::string("\0", 1)),
                    Catch::Contains("OUT_OF_RANGE: a key of 15728640 bytes"));
}

TEST_CASE("what a tensor says of itself is not believed") {
  const auto read = [](const std::string& bytes) {
    dflow::ByteReader in(bytes);
    return net::read_tensor(in);
  };
  const auto head_of = [](DType dtype, std::initializer_list<std::uint64_t> dims) {
    std::string bytes;
    dflow::ByteWriter out(bytes);
    out.boolean(false);
    out.u8(static_cast<std::uint8_t>(dtype));
    out.u8(static_cast<std::uint8_t>(dims.size()));
    for (const std::uint64_t dim : dims) out.varint(dim);
    return bytes;
  };
  const std::uint64_t huge = std::uint64_t{1} << 62;
  CHECK_THROWS_AS(read(head_of(DType::float32, {huge}) + '\0'), dflow::Error);
  CHECK_THROWS_AS(read(head_of(DType::float32, {huge, huge}) + '\0'), dflow::Error);
  CHECK_THROWS_AS(read(head_of(DType::float32, {~std::uint64_t{0}}) + '\0'), dflow::Error);
  CHECK_THROWS_AS(read(head_of(DType::string, {huge}) + '\0'), dflow::Error);
  CHECK_THROWS_AS(read(head_of(DType::resource, {}) + '\0'), dflow::Error);
  CHECK_THROWS_AS(read(head_of(DType::float32, {1, 1, 1, 1, 1, 1, 1, 1, 1}) + '\0'), dflow::Error);
  CHECK_THROWS_AS(read(head_of(DType::boolean, {1}) + "\1\2"), dflow::Error);
  CHECK(read(head_of(DType::boolean, {1}) + "\1\1").span<bool>()[0]);
}
