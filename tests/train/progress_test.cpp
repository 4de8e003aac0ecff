#include <dflow/train/progress.hpp>

#include "catch.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>

using namespace std::chrono_literals;
using dflow::train::Progress;
using dflow::train::ProgressOptions;

namespace {

std::string content_of(std::FILE* file) {
  std::string text;
  std::rewind(file);
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) text += static_cast<char>(c);
  return text;
}

}  // namespace

TEST_CASE("A file gets one line per so many steps, with rate, time left and loss") {
  dflow::VirtualClock clock;
  std::FILE* file = std::tmpfile();
  {
    Progress progress(10, {.out = file, .every = 4, .clock = &clock});
    for (int i = 0; i < 10; ++i) {
      clock.advance(500ms);
      progress.step(0.25);
    }
    CHECK(progress.rate() == Catch::Approx(2.0));
  }
  const std::string text = content_of(file);
  std::fclose(file);
  CHECK(std::count(text.begin(), text.end(), '\n') == 3);
  CHECK(text.find("4/10 [#########...............]") != std::string::npos);
  CHECK(text.find("2.0 steps/s  ETA 0:03  loss 0.2500") != std::string::npos);
  CHECK(text.find('\r') == std::string::npos);
}

TEST_CASE("A terminal gets one line that is rewritten, and ends it") {
  dflow::VirtualClock clock;
  std::FILE* file = std::tmpfile();
  {
    Progress progress(100, {.out = file, .style = ProgressOptions::Style::bar, .clock = &clock});
    for (int i = 0; i < 50; ++i) {
      clock.advance(10ms);
      progress.step(1.0);
    }
  }
  const std::string text = content_of(file);
  std::fclose(file);
  CHECK(std::count(text.begin(), text.end(), '\r') == 5);
  CHECK(std::count(text.begin(), text.end(), '\n') == 1);
}

TEST_CASE("Without a number of steps only what is done is shown") {
  for (const std::int64_t steps : {0, -5}) {
    dflow::VirtualClock clock;
    std::FILE* file = std::tmpfile();
    {
      Progress progress(steps, {.out = file, .clock = &clock});
      clock.advance(500ms);
      progress.step(2.0);
      CHECK(progress.line() == "      1 steps       2.0 steps/s  loss 2.0000");
    }
    CHECK(content_of(file) == "      1 steps       2.0 steps/s  loss 2.0000\n");
    std::fclose(file);
  }
}

TEST_CASE("Other numbers are shown behind the loss") {
  dflow::VirtualClock clock;
  std::FILE* file = std::tmpfile();
  {
    Progress progress(3, {.out = file, .style = ProgressOptions::Style::bar, .clock = &clock});
    for (const double value : {0.123456, 0.5, 1e-9}) {
      clock.advance(200ms);
      progress.show_value("accuracy", value);
      if (value == 0.5) progress.show_value("rate", 1);
      progress.step(1.0);
    }
    CHECK(progress.line().ends_with("loss 1.0000  accuracy 1e-09  rate 1"));
  }
  const std::string text = content_of(file);
  std::fclose(file);
  CHECK(text.find("loss 1.0000  accuracy 0.1235") != std::string::npos);
  CHECK(text.find("loss 1.0000  accuracy 0.5  rate 1") != std::string::npos);
}

TEST_CASE("A loss that is no number is shown once, and is no part of the means behind it") {
  dflow::VirtualClock clock;
  std::FILE* file = std::tmpfile();
  Progress progress(9, {.out = file, .clock = &clock});
  progress.step(2.0);
  for (const double loss : {std::nan(""), HUGE_VAL, std::copysign(std::nan(""), -1.0)}) {
    progress.step(loss);
    CHECK(progress.line().ends_with(std::isnan(loss) ? "loss nan" : "loss inf"));
    progress.step(1.0);
    CHECK(progress.line().ends_with("loss 1.0000"));
  }
  progress.step(2.0);
  CHECK(progress.line().ends_with("loss 1.0500"));
  progress.show_value("rate", std::copysign(std::nan(""), -1.0));
  CHECK(progress.line().ends_with("loss 1.0500  rate nan"));
  std::fclose(file);
}
