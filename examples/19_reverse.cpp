// Learns to reverse sequences of symbols: sequence to sequence with attention.
//   reverse [STEPS]
//
// An encoder reads a sequence. In training a decoder gets the right symbol of the step before (teacher forcing). After
// it, a beam search feeds the decoder's own symbols back.

#include <dflow/dflow.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>
#include <tuple>

namespace df = dflow;

namespace {

// Symbol 0 starts a sequence, and symbol 1 ends it.
constexpr std::int32_t start = 0, end = 1, num_symbols = 10;
constexpr std::int64_t batch = 64, longest = 8, beams = 3;

struct Batch {
  df::Tensor<std::int32_t> source{df::Shape({batch, longest})}, lengths{df::Shape({batch})};
  df::Tensor<std::int32_t> shifted{df::Shape({batch, longest + 1})}, targets{df::Shape({batch, longest + 1})};
  df::Tensor<float> weights{df::Shape({batch, longest + 1})};
};

/// Sequences of 3 to 8 symbols, and the sequences in reverse with the end symbol.
Batch draw(std::mt19937& random) {
  Batch drawn;
  for (std::int64_t b = 0; b < batch; ++b) {
    const auto length = 3 + static_cast<std::int32_t>(random() % (longest - 2));
    drawn.lengths(b) = length;
    for (std::int64_t t = 0; t < longest; ++t) {
      drawn.source(b, t) = t < length ? 2 + static_cast<std::int32_t>(random() % (num_symbols - 2)) : end;
    }
    for (std::int64_t t = 0; t <= longest; ++t) {
      drawn.targets(b, t) = t < length ? drawn.source(b, length - 1 - t) : end;
      drawn.shifted(b, t) = t == 0 ? start : drawn.targets(b, t - 1);
      drawn.weights(b, t) = t <= length ? 1.0f : 0.0f;
    }
  }
  return drawn;
}

int run(std::int64_t steps) {
  df::Graph graph({.seed = 1});
  auto source = df::placeholder<std::int32_t>(graph, {batch, longest});
  auto lengths = df::placeholder<std::int32_t>(graph, {batch});
  auto shifted = df::placeholder<std::int32_t>(graph, {batch, longest + 1});
  auto targets = df::placeholder<std::int32_t>(graph, {batch, longest + 1});
  auto weights = df::placeholder<float>(graph, {batch, longest + 1});

  df::Embedding<float> embedding(num_symbols, 16);
  df::Dense out(num_symbols);
  auto [memory, last] = df::dynamic_rnn(df::GruCell(48), embedding(source), {.sequence_length = lengths});
  df::AttentionCell decoder(df::GruCell(48), memory, {.memory_length = lengths});
  auto outputs = std::get<0>(df::dynamic_rnn(decoder, embedding(shifted), decoder.initial_state(last)));
  auto loss = df::sequence_loss(out(outputs), targets, weights);
  df::train::Adam optimizer(1e-2f);
  auto train = optimizer.apply_gradients(df::clip_by_global_norm(optimizer.compute_gradients(loss), 5.0));

  auto searcher = decoder.with_memory(df::tile_beams(memory, beams), df::tile_beams(lengths, beams));
  auto found = df::beam_search<float>(
      searcher, decoder.initial_state(last), embedding, out,
      {.beam_width = beams, .max_length = longest + 1, .start_symbol = start, .end_symbol = end});

  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  std::mt19937 random(1);
  df::train::Progress progress(steps);
  float value = 0;
  for (std::int64_t step = 0; step < steps; ++step) {
    const Batch drawn = draw(random);
    value = session
                .run({{source, drawn.source},
                      {lengths, drawn.lengths},
                      {shifted, drawn.shifted},
                      {targets, drawn.targets},
                      {weights, drawn.weights}},
                     loss, train)
                .scalar();
    progress.step(value);
  }
  const Batch fresh = draw(random);
  const auto symbols = session.run({{source, fresh.source}, {lengths, fresh.lengths}}, found.symbols);
  std::int64_t num_right = 0;
  for (std::int64_t b = 0; b < batch; ++b) {
    bool is_right = true;
    for (std::int64_t t = 0; t <= longest; ++t) is_right = is_right && symbols(b, 0, t) == fresh.targets(b, t);
    if (is_right) ++num_right;
  }
  std::printf("loss %.3f, reversed %lld %% of new sequences\n", static_cast<double>(value),
              static_cast<long long>(100 * num_right / batch));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? std::atoll(argv[1]) : 300);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
