#include <dflow/ops/random/candidates.hpp>
#include <dflow/ops/random/multinomial.hpp>

#include <dflow/graph/graph.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/session/session.hpp>

#include "catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace df = dflow;

namespace {

using ClassIds = std::vector<std::int64_t>;

struct DrawnRun {
  ClassIds candidates;
  std::vector<float> true_counts, counts;
};

DrawnRun drawn_by(df::Session& session, const df::Candidates& sampler) {
  const auto [candidates, true_counts, counts] =
      session.run(sampler.sampled_candidates, sampler.true_expected_count, sampler.sampled_expected_count);
  return {
      {candidates.begin(), candidates.end()}, {true_counts.begin(), true_counts.end()}, {counts.begin(), counts.end()}};
}

df::Candidates outputs_of_sampler(const df::BuiltNode& node) {
  return {df::Output<std::int64_t>(node.output(0)), df::Output<float>(node.output(1)),
          df::Output<float>(node.output(2))};
}

const df::Tensor<std::int64_t>& three_pairs() {
  static const df::Tensor<std::int64_t> classes({3, 2}, {0, 2, 5, 1, 3, 3});
  return classes;
}

/// Two runs with seeds 301 and 17.
template <class O>
std::vector<DrawnRun> runs_of_sampler(bool unique, std::int64_t range_max) {
  df::Graph graph;
  const auto classes = df::constant(graph, three_pairs());
  const auto sampler = outputs_of_sampler(df::build<O>(
      {classes},
      {.num_true = 2, .num_sampled = 6, .unique = unique, .range_max = range_max, .seed = 301, .seed2 = 17}));
  df::Session session(graph);
  std::vector<DrawnRun> runs;
  for (int i = 0; i < 2; ++i) runs.push_back(drawn_by(session, sampler));
  return runs;
}

std::vector<DrawnRun> runs_of_fixed(bool unique) {
  df::Graph graph;
  const auto classes = df::constant(graph, three_pairs());
  const auto sampler =
      outputs_of_sampler(df::build<df::FixedUnigramCandidateSampler>({classes}, {.num_true = 2,
                                                                                 .num_sampled = 4,
                                                                                 .unique = unique,
                                                                                 .range_max = 7,
                                                                                 .distortion = 0.75f,
                                                                                 .num_reserved_ids = 2,
                                                                                 .unigrams = {1.0, 0.5, 4.0, 0.0, 3.0},
                                                                                 .seed = 301,
                                                                                 .seed2 = 17}));
  df::Session session(graph);
  std::vector<DrawnRun> runs;
  for (int i = 0; i < 2; ++i) runs.push_back(drawn_by(session, sampler));
  return runs;
}

bool are_near(const std::vector<float>& got, const std::vector<double>& wanted) {
  if (got.size() != wanted.size()) return false;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (!(std::abs(static_cast<double>(got[i]) - wanted[i]) <= 4e-7 * std::abs(wanted[i]))) return false;
  }
  return true;
}

/// How often each class was drawn in `runs` runs, beside the sum of the expected counts of all classes.
template <class Sampler>
void check_frequencies(std::int64_t range, std::int64_t runs, const Sampler& sampler) {
  df::Graph graph({.seed = 20260118});
  df::Tensor<std::int64_t> all({range, 1});
  for (std::int64_t i = 0; i < range; ++i) all.data()[i] = i;
  const df::Candidates drawn = sampler(df::Output<std::int64_t>(df::constant(graph, all)));
  df::Session session(graph);
  std::vector<double> seen(static_cast<std::size_t>(range)), expected(seen.size());
  for (std::int64_t i = 0; i < runs; ++i) {
    const DrawnRun run = drawn_by(session, drawn);
    for (const std::int64_t id : run.candidates) seen.at(static_cast<std::size_t>(id)) += 1;
    for (std::size_t id = 0; id < expected.size(); ++id) expected[id] += static_cast<double>(run.true_counts[id]);
  }
  for (std::size_t id = 0; id < seen.size(); ++id) {
    INFO("class " << id << ": " << seen[id] << " times, " << expected[id] << " expected");
    // Five standard errors of a count. The expected counts of unique candidates are an estimate, near to 1 in 100.
    CHECK(std::abs(seen[id] - expected[id]) <= 5 * std::sqrt(expected[id]) + 0.02 * expected[id]);
  }
}

}  // namespace

// Expected values: tools/oracle/candidate_values.py, TensorFlow 2.21.0, two runs of one session with seed = 301,
// seed2 = 17.

TEST_CASE("multinomial draws TensorFlow's classes") {
  const auto runs = []<class T>(T) {
    df::Graph graph;
    const T lost = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
    const auto logits =
        df::constant(graph, df::Tensor<T>({3, 5}, {T(0.5), -1, 2, 0, -lost, 1, 1, 1, 1, 1, -3, 4, 0, nan, 2}));
    const df::Output<std::int64_t> y(
        df::build<df::Multinomial>({logits, df::constant(graph, 7)}, {.seed = 301, .seed2 = 17}).output(0));
    CHECK(y.shape() == df::PartialShape{3, 7});
    df::Session session(graph);
    std::vector<ClassIds> all;
    for (int i = 0; i < 2; ++i) {
      const auto got = session.run(y);
      all.emplace_back(got.begin(), got.end());
    }
    return all;
  };
  const std::vector<ClassIds> wanted{{3, 0, 2, 2, 2, 2, 0, 1, 4, 2, 2, 4, 3, 1, 4, 1, 1, 1, 1, 1, 1},
                                     {2, 2, 2, 2, 2, 2, 2, 3, 3, 1, 2, 2, 3, 4, 1, 1, 1, 1, 4, 1, 1}};
  CHECK(runs(float{}) == wanted);
  CHECK(runs(double{}) == wanted);
}

TEST_CASE("multinomial draws by the probabilities, the same for a seed and any number of threads") {
  const std::vector<double> weights{0.5, 4, 0, 2, 1, 2.5};
  df::Tensor<float> logits({40, 6});
  for (std::int64_t i = 0; i < 240; ++i) {
    const double weight = weights[static_cast<std::size_t>(i % 6)];
    // Any number may be added to the logits of a row.
    logits.data()[i] = weight == 0 ? -std::numeric_limits<float>::infinity()
                                   : static_cast<float>(std::log(weight)) + static_cast<float>(i / 6 * 20 - 300);
  }
  const auto draw = [&](std::uint64_t seed, int threads) {
    df::Graph graph;
    const auto y = df::multinomial(df::constant(graph, logits), 5000, {.seed = seed});
    df::Session session(graph, {.num_threads = threads});
    const auto got = session.run(y);
    return ClassIds(got.begin(), got.end());
  };
  const ClassIds drawn = draw(9, 1);
  CHECK(drawn == draw(9, 4));
  CHECK(drawn != draw(10, 1));
  std::map<std::int64_t, int> seen;
  for (const std::int64_t id : drawn) ++seen[id];
  CHECK(seen.size() == 5);
  for (const auto& [id, count] : seen) {
    const double p = weights.at(static_cast<std::size_t>(id)) / 10, n = 200'000;
    CHECK(std::abs(count - n * p) <= 5 * std::sqrt(n * p * (1 - p)));
  }
}

TEST_CASE("samplers draw TensorFlow's candidates and expect what it expects") {
  const auto uniform = runs_of_sampler<df::UniformCandidateSampler>(true, 7);
  CHECK(uniform[0].candidates == ClassIds{5, 2, 6, 0, 3, 1});
  CHECK(uniform[1].candidates == ClassIds{0, 5, 4, 6, 3, 1});
  CHECK(are_near(uniform[0].true_counts, std::vector<double>(6, 0.9009628295898438)));
  CHECK(are_near(uniform[1].counts, std::vector<double>(6, 0.8165214657783508)));
  const auto wide = runs_of_sampler<df::UniformCandidateSampler>(false, 1000);
  CHECK(wide[0].candidates == ClassIds{422, 557, 609, 600, 77, 231});
  CHECK(wide[1].candidates == ClassIds{548, 408, 813, 637, 212, 10});
  CHECK(are_near(wide[0].counts, std::vector<double>(6, 0.006)));

  const auto words = runs_of_sampler<df::LogUniformCandidateSampler>(true, 7);
  CHECK(words[0].candidates == ClassIds{6, 0, 2, 1, 5, 4});
  CHECK(words[1].candidates == ClassIds{3, 0, 5, 1, 2, 6});
  CHECK(are_near(words[0].true_counts, {0.9999995231628418, 0.9953011870384216, 0.9375134110450745, 0.9995936751365662,
                                        0.9832028746604919, 0.9832028746604919}));
  CHECK(are_near(words[1].counts, {0.9904777407646179, 0.9999999403953552, 0.9574857354164124, 0.9998626112937927,
                                   0.997768223285675, 0.9342010617256165}));
  const auto repeated = runs_of_sampler<df::LogUniformCandidateSampler>(false, 7);
  CHECK(repeated[0].candidates == ClassIds{6, 0, 2, 1, 5, 1});
  CHECK(are_near(repeated[0].true_counts, {2.0, 0.8300750255584717, 0.44478487968444824, 1.1699249744415283,
                                           0.6438561677932739, 0.6438561677932739}));

  const auto learned = runs_of_sampler<df::LearnedUnigramCandidateSampler>(true, 7);
  CHECK(learned[0].candidates == ClassIds{6, 5, 2, 0, 3, 1});
  CHECK(learned[1].candidates == ClassIds{3, 0, 6, 4, 1, 2});
  CHECK(are_near(learned[0].counts, std::vector<double>(6, 0.6600833535194397)));
  CHECK(are_near(learned[1].counts, {0.984971821308136, 0.9309459328651428, 0.7221526503562927, 0.7221526503562927,
                                     0.9309459328651428, 0.9309459328651428}));
  CHECK(runs_of_sampler<df::ThreadUnsafeUnigramCandidateSampler>(false, 1000)[1].candidates ==
        ClassIds{704, 178, 556, 791, 623, 928});

  const auto fixed = runs_of_fixed(true);
  CHECK(fixed[0].candidates == ClassIds{6, 4, 2, 3});
  CHECK(are_near(fixed[0].true_counts, {0.0, 0.935865581035614, 0.0, 0.0, 0.7938722372055054, 0.7938722372055054}));
  CHECK(runs_of_fixed(false)[1].candidates == ClassIds{6, 4, 6, 2});
}

TEST_CASE("candidates come as often as the sampler expects") {
  for (const bool unique : {false, true}) {
    const df::CandidateOptions options{.num_sampled = 10, .range_max = 60, .unique = unique, .seed = 4};
    check_frequencies(60, 1500, [&](const auto& all) { return df::uniform_candidate_sampler(all, options); });
    check_frequencies(60, 1500, [&](const auto& all) { return df::log_uniform_candidate_sampler(all, options); });
    check_frequencies(60, 1000, [&](const auto& all) { return df::learned_unigram_candidate_sampler(all, options); });
    std::vector<double> weights(58);
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<double>(i % 7);
    check_frequencies(60, 1500, [&](const auto& all) {
      return df::fixed_unigram_candidate_sampler(all, options, {.unigrams = weights, .num_reserved_ids = 2});
    });
  }
}

TEST_CASE("unique candidates may be all classes, and a session learns by itself") {
  df::Graph graph({.seed = 3});
  const auto fed = df::placeholder<std::int64_t>(graph, {df::dynamic, 1});
  const auto all = df::learned_unigram_candidate_sampler(fed, {.num_sampled = 1000, .range_max = 1000});
  const auto one = df::learned_unigram_candidate_sampler(fed, {.num_sampled = 1, .range_max = 3, .unique = false});
  df::Session session(graph), other(graph);
  const df::Tensor<std::int64_t> twos({3, 1}, {2, 2, 2}), zero({1, 1}, {0});
  auto drawn = session.run({{fed, twos}}, all.sampled_candidates);
  std::sort(drawn.begin(), drawn.end());
  for (std::int64_t i = 0; i < 1000; ++i) REQUIRE(drawn(i) == i);
  // By hand: 1 of 3, then 4 of 6 for the class 2 and 1 of 6 for the class 0.
  CHECK(session.run({{fed, twos}}, one.true_expected_count)(0, 0) == Catch::Approx(1.0 / 3));
  CHECK(session.run({{fed, zero}}, one.true_expected_count)(0, 0) == Catch::Approx(1.0 / 6));
  CHECK(other.run({{fed, zero}}, one.true_expected_count)(0, 0) == Catch::Approx(1.0 / 3));
}

TEST_CASE("weights of classes are read from a file, in shards") {
  const df::testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/words.csv";
  std::ofstream(path) << "a,1\nb,x,2.5\nc,0\n7\ne,4\nf,3\n";
  df::Graph graph;
  const auto classes = df::constant(graph, df::Tensor<std::int64_t>({2, 2}, {0, 2, 1, 1}));
  const df::CandidateOptions options{.num_sampled = 5, .range_max = 3, .unique = false, .seed = 3};
  const auto odd =
      df::fixed_unigram_candidate_sampler(classes, options, {.vocab_file = path, .num_shards = 2, .shard = 1});
  df::Session session(graph);
  // The lines 2, 4 and 6: 2.5, 7 and 3 of 12.5.
  CHECK(are_near(drawn_by(session, odd).true_counts, {1.0, 1.2, 2.8, 2.8}));
  int bad_nodes = 0;
  const auto error_with = [&](const df::UnigramOptions& unigrams, df::Code code = df::Code::invalid_argument) {
    const auto bad = df::fixed_unigram_candidate_sampler(classes, options, unigrams,
                                                         {.name = "words" + std::to_string(bad_nodes++)});
    return error_of([&] { session.run(bad.sampled_candidates); }, code);
  };
  CHECK(error_with({.vocab_file = path}).find("range_max = 3 is not the number of classes") != std::string::npos);
  std::ofstream(path) << "a,1\n\nb,many\n";
  const std::string text = error_with({.vocab_file = path});
  CHECK(text.find("words.csv, line 3: 'many' is no weight") != std::string::npos);
  CHECK(text.find("'words1'") != std::string::npos);
  CHECK(error_with({.vocab_file = folder.path() + "/none"}, df::Code::not_found).find("/none") != std::string::npos);
}

TEST_CASE("builders of samplers say what does not fit") {
  df::Graph graph;
  const auto open = df::placeholder<std::int64_t>(graph, {3, df::dynamic});
  CHECK(error_of([&] {
          df::uniform_candidate_sampler(open, {.num_sampled = 1, .range_max = 3});
        }).find("with a known num_true, got [3,?]") != std::string::npos);
  const auto classes = df::placeholder<std::int64_t>(graph, {df::dynamic, 2});
  CHECK(error_of([&] {
          df::log_uniform_candidate_sampler(classes, {.num_sampled = 4, .range_max = 3});
        }).find("num_sampled = 4 unique candidates are more than range_max = 3 classes") != std::string::npos);
  const auto drawn = df::all_candidate_sampler(classes, 4);
  CHECK(drawn.true_expected_count.shape() == df::PartialShape{df::dynamic, 2});
  const auto candidates = df::constant(graph, df::Tensor<std::int64_t>({4}, {0, 1, 2, 3}));
  const auto hits = df::compute_accidental_hits(classes, candidates);
  df::Session session(graph);
  const df::Tensor<std::int64_t> fed({3, 2}, {7, 1, 3, 3, 0, 9});
  const auto [rows, places] = session.run({{classes, fed}}, hits.indices, hits.ids);
  CHECK(std::vector<std::int32_t>(rows.begin(), rows.end()) == std::vector<std::int32_t>{0, 1, 1, 2});
  CHECK(ClassIds(places.begin(), places.end()) == ClassIds{1, 3, 3, 0});
}
