// Reads bytes as the index of a checkpoint beside a small shard, once as they are and once with right checksums. Also
// reads them as the numbers of the saved state of queues and accumulators.
#include <dflow/base/files/crc32c.hpp>
#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/base/status.hpp>
#include <dflow/io/checkpoint/own/checkpoint_reader.hpp>
#include <dflow/state/accumulator_state.hpp>
#include <dflow/state/queue_state.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

void put_u64(std::string& bytes, std::size_t at, std::uint64_t value) {
  std::memcpy(bytes.data() + at, &value, sizeof(value));
}

void put_crc(std::string& bytes, std::size_t at, std::size_t begin, std::size_t end) {
  const std::uint32_t crc = dflow::crc32c(std::string_view(bytes).substr(begin, end - begin));
  std::memcpy(bytes.data() + at, &crc, sizeof(crc));
}

void read(const std::string& bytes) {
  dflow::CheckpointIndex index;
  try {
    index = dflow::CheckpointIndex::parse(std::as_bytes(std::span(bytes)));
  } catch (const dflow::Error&) {
    return;
  }
  const std::string again = index.serialize();
  if (dflow::CheckpointIndex::parse(std::as_bytes(std::span(again))) != index) std::abort();
  dflow::MemoryFileSystem files;
  try {
    for (const dflow::CheckpointShard& shard : index.shards) {
      if (shard.size > 4096) return;
      files.write_file_atomically(shard.file, std::string(static_cast<std::size_t>(shard.size), '\0'));
    }
    files.write_file_atomically("m.index", bytes);
    const dflow::CheckpointReader reader(files, "m");
    for (const dflow::CheckpointEntry& entry : index.entries) {
      try {
        static_cast<void>(reader.read(entry.name));
      } catch (const dflow::Error&) {  // the next one may do
      }
    }
    reader.verify();
  } catch (const dflow::Error&) {  // names and checksums may be anything
  }
}

/// A state that is accepted is given again as it was.
void restore(dflow::SavableResource& resource, const std::vector<dflow::AnyTensor>& state) {
  try {
    resource.restore_state(state);
  } catch (const dflow::Error&) {
    return;
  }
  const std::vector<dflow::AnyTensor> again = resource.saved_state();
  if (!dflow::bitwise_equal(again[0], state[0])) std::abort();
  resource.restore_state(again);
}

/// A byte is a number of the state, mostly a small one.
void restore_states(const std::uint8_t* data, std::size_t size) {
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < size; ++i) {
    numbers.push_back(data[i] < 240 ? data[i] % 8 - 1 : std::int64_t{1} << (data[i] - 240 + 48));
  }
  const dflow::Tensor<std::int64_t> layout({static_cast<std::int64_t>(size)}, numbers);
  for (const std::int64_t length : {0, 2, 6}) {
    const auto floats = dflow::Tensor<float>::full({length}, 1.0f);
    dflow::Tensor<std::string> texts(dflow::Shape{length});
    dflow::Tensor<std::int64_t> rows(dflow::Shape{length});
    for (std::int64_t i = 0; i < length; ++i) rows(i) = i;
    dflow::QueueState queue("q", {{dflow::DType::float32, dflow::DType::string}, {}, 8});
    restore(queue, {layout, floats, texts});
    dflow::AccumulatorState dense("d", dflow::DType::float32, dflow::PartialShape::unknown(), {});
    restore(dense, {layout, dflow::Tensor<std::int64_t>(dflow::Shape{0}), floats});
    dflow::AccumulatorState sparse("s", dflow::DType::float32, {5, dflow::dynamic}, {.is_sparse = true});
    restore(sparse, {layout, rows, floats});
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  read(bytes);
  if (size <= 256) restore_states(data, size);
  constexpr std::size_t header = dflow::CheckpointIndex::header_bytes;
  if (size < header + 4) return 0;
  put_u64(bytes, 32, size - header - 4);
  put_crc(bytes, header - 4, 0, header - 4);
  put_crc(bytes, size - 4, header, size - 4);
  read(bytes);
  return 0;
}
