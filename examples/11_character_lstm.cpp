// Learns a text letter by letter with a recurrent network, and writes some of its own:
//   character_lstm [FILE [STEPS]]
// Without a file it learns a verse by heart.
//
// Training goes over stretches of the text by `dynamic_rnn`. One step of the session writes a text: a loop in the
// graph draws each letter from the network's prediction after the letter before.

#include <dflow/dflow.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <tuple>

namespace df = dflow;

namespace {

constexpr std::int64_t stretch = 32, batch = 16;

const char* const verse =
    "The curfew tolls the knell of parting day, the lowing herd wind slowly o'er the lea, the plowman homeward plods "
    "his "
    "weary way, and leaves the world to darkness and to me. ";

/// Numbers of the letters of `batch` stretches [batch, stretch + 1], evenly spread from an offset on.
df::Tensor<std::int32_t> stretches(const std::string& text, const std::string& alphabet, std::int64_t step) {
  df::Tensor<std::int32_t> ids({batch, stretch + 1});
  const auto length = static_cast<std::int64_t>(text.size());
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t t = 0; t <= stretch; ++t) {
      const char letter = text[static_cast<std::size_t>((b * length / batch + step * stretch + t) % length)];
      ids(b, t) = static_cast<std::int32_t>(alphabet.find(letter));
    }
  }
  return ids;
}

int run(const std::string& path, std::int64_t steps) {
  df::PosixFileSystem files;
  std::string text = path.empty() ? verse : files.read_file(path);
  std::string alphabet = text;
  std::sort(alphabet.begin(), alphabet.end());
  alphabet.erase(std::unique(alphabet.begin(), alphabet.end()), alphabet.end());
  const auto letters = static_cast<std::int32_t>(alphabet.size());

  df::Graph graph({.seed = 1});
  auto ids = df::placeholder<std::int32_t>(graph, {df::dynamic, stretch + 1});
  df::LstmCell cell(96);
  df::Dense out(letters);
  auto encoded = [&](df::Output<std::int32_t> of) { return df::one_hot<float>(of, letters); };

  // Training: each letter's successor.
  auto x = df::slice(ids, {0, 0}, {-1, stretch}), wanted = df::slice(ids, {0, 1}, {-1, stretch});
  auto outputs = std::get<0>(df::dynamic_rnn(cell, encoded(x)));
  auto logits = out(df::reshape(outputs, {-1, 96}));
  auto loss = df::reduce_mean(df::sparse_softmax_cross_entropy(logits, df::reshape(wanted, {-1})));
  df::train::Adam optimizer(5e-3f);
  auto train = optimizer.apply_gradients(df::train::clip_by_global_norm(optimizer.compute_gradients(loss), 5.0));

  // Writing: `count` letters behind the first of the alphabet's.
  constexpr std::int32_t count = 160;
  auto first = df::placeholder<std::int32_t>(graph, {1});
  auto state = cell.zero_state(encoded(first));
  auto written = std::get<3>(df::while_loop(
      [&](auto i, auto, auto, auto, auto) { return i < count; },
      [&](auto i, auto letter, auto c, auto written, auto h) {
        auto [output, next] = cell(encoded(letter), std::tuple{c, h});
        auto noise = -df::log(-df::log(df::random_uniform<float>(graph, {1, letters}) + 1e-20f) + 1e-20f);
        auto drawn = df::cast<std::int32_t>(df::argmax(out(output) * 2.0f + noise, 1));  // Gumbel's trick
        auto drawn_one = df::reshape(drawn, {1});
        return std::tuple{i + 1, drawn_one, std::get<0>(next), written.write(i, drawn_one), std::get<1>(next)};
      },
      std::tuple{df::constant(graph, 0), first, std::get<0>(state), df::TensorArray<std::int32_t>(graph, count, {1}),
                 std::get<1>(state)}));
  auto all = written.stack();

  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  df::train::Progress progress(steps);
  float value = 0;
  for (std::int64_t step = 0; step < steps; ++step) {
    value = session.run({{ids, stretches(text, alphabet, step)}}, loss, train).scalar();
    progress.step(value);
  }
  std::string wrote;
  for (const std::int32_t id : session.run({{first, df::Tensor<std::int32_t>({1}, {letters - 1})}}, all)) {
    wrote += alphabet[static_cast<std::size_t>(id)];
  }
  std::printf("%d letters, loss %.3f of ln %d = %.3f\n%s\n", letters, static_cast<double>(value), letters,
              std::log(static_cast<double>(letters)), wrote.c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "", argc > 2 ? std::atoll(argv[2]) : 200);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
