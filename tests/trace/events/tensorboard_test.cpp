// TensorBoard's own loader reads a file that the library wrote.
#include <dflow/trace/events/event_file.hpp>

#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/math/matmul.hpp>
#include <dflow/ops/summary/summary.hpp>

#include "catch.hpp"
#include "support/source_folder.hpp"
#include "support/temporary_folder.hpp"

#include <dflow/base/files/file_system.hpp>
#include <dflow/core/tensor.hpp>
#include <dflow/runtime/step_stats.hpp>
#include <dflow/session/session.hpp>

#include <unistd.h>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <limits>
#include <string>

using namespace dflow;
using namespace std::chrono_literals;

namespace {

/// The summary that the ops of a graph give in one step.
Tensor<std::string> summary_of_ops() {
  Graph graph;
  scalar_summary("op/scalar", constant(graph, BFloat16(0.5f)));
  histogram_summary("op/histogram", constant(graph, Tensor<std::int32_t>({3}, {1, 1, 2})));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  image_summary("op/image", constant(graph, Tensor<float>({2, 1, 2, 1}, {0, 1, nan, 4})),
                {.bad_color = Tensor<std::uint8_t>({1}, {9})});
  audio_summary("op/audio", constant(graph, Tensor<float>({1, 2, 2}, {0, 0.5f, -1, 1})), 8000.5f, {.max_outputs = 1});
  text_summary("op/text", constant(graph, "*text*"));
  Session session(graph);
  return session.run(merge_all_summaries(graph));
}

void write_events_of_each_kind(FileSystem& files, const std::string& folder) {
  VirtualClock clock(1700000000s);
  EventWriter events(files, folder, clock, {.host = "host", .suffix = {}});
  Graph graph;
  {
    const auto device = graph.device("/job:ps/task:0/cpu:0");
    const auto scope = graph.name_scope("layer");
    const auto w = constant(graph, Tensor<float>({2, 2}, {1, 2, 3, 4}), {.name = "w"});
    matmul(w, w, {.transpose_b = true}, {.name = "y"});
  }
  events.add_graph(graph);
  events.add_start(0);
  for (int step = 1; step <= 3; ++step) events.add_scalar("loss", 1.0 / step, step);
  events.add_scalar("layer/nan", std::numeric_limits<double>::quiet_NaN(), 1);
  events.add_histogram("layer/weights", Tensor<float>({5}, {-1, 0, 0.5f, 0.5f, 2}), 2);
  events.add_image("grey", Tensor<float>({2, 2, 1}, {0, 0.5f, 1, 2}), 2);
  events.add_image("batch", Tensor<std::uint8_t>({2, 1, 1, 3}, {1, 2, 3, 4, 5, 6}), 2);
  events.add_audio("beep", Tensor<float>({3}, {0, 1, -1}), 8000, 2);
  events.add_text("notes", "# Title", 2);
  events.add_summary(summary_of_ops(), 2);
  events.add_hyperparameters(
      {.values = {{"lr", 0.5}, {"opt", std::string("adam")}, {"fast", true}}, .metrics = {"loss"}, .group = "first"});
  StepStats stats;
  stats.wall_start_us = 1000;
  stats.nodes = {{"layer/y", "MatMul", "/job:ps/task:0/cpu:0", 2000, 5000, 0, 16, "float[2,2]"}};
  events.add_run_metadata("step 2", stats, 2);
  events.add_checkpoint("model-3", 3);
  events.add_hyperparameters_end(true);
  events.close();
}

}  // namespace

// A test of its own runs this, and reports it as not run if there is no TensorBoard.
TEST_CASE("TensorBoard reads everything that an event file holds", "[.tensorboard]") {
  const std::filesystem::path program = testing::source_folder() + "/tests/tools/read_events.py";
  REQUIRE(std::filesystem::exists(program));
  const testing::TemporaryFolder folder;
  PosixFileSystem files;
  write_events_of_each_kind(files, folder.file("run"));
  const char* python = std::getenv("DFLOW_TENSORBOARD_PYTHON");
  const std::string command = str_cat(python == nullptr ? "python3" : python, " '", program.string(), "' '",
                                      folder.file("run"), "' > '", folder.file("out"), "'");
  const int status = std::system(command.c_str());
  const std::string output = files.read_file(folder.file("out"));
  constexpr int not_installed = 77;
  if (WEXITSTATUS(status) == not_installed) {
    std::cout << output;
    return;
  }
  REQUIRE(status == 0);
  CHECK(output ==
        "version 2.0\n"
        "scalar layer/nan [(1, nan)]\n"
        "scalar loss [(1, 1.0), (2, 0.5), (3, 0.3333333432674408)]\n"
        "scalar op/scalar [(2, 0.5)]\n"
        "histogram layer/weights 2 -1.0 2.0 5.0 2.0 5.5 9 5.0\n"
        "histogram op/histogram 2 1.0 2.0 3.0 4.0 6.0 5 3.0\n"
        "image batch/image/0 2 1 1 [1, 2, 3]\n"
        "image batch/image/1 2 1 1 [4, 5, 6]\n"
        "image grey 2 2 2 [0, 63, 127, 255]\n"
        "image op/image/image/0 2 1 2 [0, 255]\n"
        "image op/image/image/1 2 1 2 [9, 255]\n"
        "audio beep 2 8000.0 3 audio/wav 50\n"
        "audio op/audio/audio 2 8000.5 2 audio/wav 52\n"
        "tensor _hparams_/experiment 0 hparams []\n"
        "  compares [('fast', 2), ('lr', 3), ('opt', 1)] ['loss']\n"
        "  has {}  0.0 0 0.0\n"
        "tensor _hparams_/session_end_info 0 hparams []\n"
        "  compares [] []\n"
        "  has {}  0.0 1 1700000000.0\n"
        "tensor _hparams_/session_start_info 0 hparams []\n"
        "  compares [] []\n"
        "  has {'fast': True, 'lr': 0.5, 'opt': 'adam'} first 1700000000.0 0 0.0\n"
        "tensor notes 2 text b'# Title'\n"
        "tensor op/text 2 text b'*text*'\n"
        "node layer/w Const [] /job:ps/task:0/device:CPU:0 ['_output_shapes', 'dtype', 'value'] [[2, 2]]\n"
        "node layer/y MatMul ['layer/w', 'layer/w'] /job:ps/task:0/device:CPU:0 ['T', '_output_shapes', 'transpose_b'] "
        "[[2, 2]]\n"
        "ran step 2 /job:ps/task:0/cpu:0 layer/y 1002 3\n"
        "plugin __run_graph__ graphs 1\n"
        "plugin _hparams_/experiment hparams 1\n"
        "plugin _hparams_/session_end_info hparams 1\n"
        "plugin _hparams_/session_start_info hparams 1\n"
        "plugin batch/image/0 images 1\n"
        "plugin batch/image/1 images 1\n"
        "plugin beep audio 1\n"
        "plugin grey images 1\n"
        "plugin layer/nan scalars 1\n"
        "plugin layer/weights histograms 1\n"
        "plugin loss scalars 3\n"
        "plugin notes text 1\n"
        "plugin op/audio/audio audio 1\n"
        "plugin op/histogram histograms 1\n"
        "plugin op/image/image/0 images 1\n"
        "plugin op/image/image/1 images 1\n"
        "plugin op/scalar scalars 1\n"
        "plugin op/text text 1\n"
        "plugin step 2 graph_tagged_run_metadata 1\n");
}
