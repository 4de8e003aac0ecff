// Files against TensorFlow's pixels: tests/image/tensorflow_images.txt, which tools/oracle/image_files.py writes.
#include <dflow/image/image.hpp>

#include <dflow/base/files/file_system.hpp>
#include <dflow/base/sha256.hpp>
#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>

#include "catch.hpp"
#include "support/source_folder.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <span>
#include <sstream>
#include <string>

namespace {

using dflow::str_cat;
using dflow::testing::source_folder;

std::map<std::string, std::string> attrs_of(const std::string& text) {
  std::map<std::string, std::string> attrs;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    if (const auto at = word.find('='); at != std::string::npos) attrs[word.substr(0, at)] = word.substr(at + 1);
  }
  return attrs;
}

dflow::DecodeJpeg::Attrs jpeg_attrs(std::map<std::string, std::string> given) {
  dflow::DecodeJpeg::Attrs attrs;
  if (given.contains("channels")) attrs.channels = std::stoi(given["channels"]);
  if (given.contains("ratio")) attrs.ratio = std::stoi(given["ratio"]);
  if (given.contains("fancy_upscaling")) attrs.fancy_upscaling = given["fancy_upscaling"] == "1";
  if (given.contains("try_recover_truncated")) attrs.try_recover_truncated = given["try_recover_truncated"] == "1";
  if (given.contains("acceptable_fraction")) attrs.acceptable_fraction = std::stof(given["acceptable_fraction"]);
  attrs.dct_method = given["dct_method"];
  return attrs;
}

dflow::AnyTensor decoded(const std::string& op, const std::string& contents, std::map<std::string, std::string> given) {
  if (op == "DecodeJpeg") return dflow::image::decode_jpeg(contents, jpeg_attrs(given));
  const std::string dtype = given["dtype"];
  if (op == "DecodePng") {
    const dflow::DecodePng::Attrs attrs{.channels = std::stoi(given["channels"])};
    if (dtype == "uint16") return dflow::image::decode_png<std::uint16_t>(contents, attrs);
    return dflow::image::decode_png(contents, attrs);
  }
  if (dtype == "uint16") return dflow::image::decode_image<std::uint16_t>(contents);
  if (dtype == "float32") return dflow::image::decode_image<float>(contents);
  return dflow::image::decode_image(contents);
}

/// As a line of the file says it: the shape and 64 bits of the hash, or "refused".
std::string outcome(const std::string& op, const std::string& contents, const std::string& attrs) {
  dflow::AnyTensor pixels;
  try {
    pixels = decoded(op, contents, attrs_of(attrs));
  } catch (const dflow::Error& error) {
    CHECK(error.code() == dflow::Code::invalid_argument);
    return "refused";
  }
  std::string text = str_cat(pixels.dim(0), "x", pixels.dim(1), "x", pixels.dim(2), " ");
  const auto* const bytes = static_cast<const std::byte*>(pixels.raw_data());
  const dflow::Sha256Digest digest = dflow::sha256(std::span(bytes, pixels.bytes()));
  for (int i = 0; i < 8; ++i) {
    for (const int digit : {static_cast<int>(digest[i]) / 16, static_cast<int>(digest[i]) % 16}) {
      text += "0123456789abcdef"[digit];
    }
  }
  return text;
}

}  // namespace

TEST_CASE("files are decoded to TensorFlow's bits", "[image]") {
  dflow::PosixFileSystem files;
  const char* const root = std::getenv("DFLOW_DATA");
  if (root == nullptr) WARN("DFLOW_DATA is not set: the files of data/images are not decoded");
  std::istringstream lines(files.read_file(source_folder() + "/tests/image/tensorflow_images.txt"));
  std::map<std::string, std::string> contents;
  int compared = 0;
  std::string all_faults;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string op, name, attrs, expected;
    words >> op >> name >> attrs;
    std::getline(words >> std::ws, expected);
    if (op == "#" || (name.starts_with("data/") && root == nullptr)) continue;
    const std::string file = name.starts_with("data/") ? str_cat(root, "/images/", name.substr(5))
                                                       : str_cat(source_folder(), "/tests/fuzz/", name);
    if (!contents.contains(name)) contents[name] = files.read_file(file);
    const std::string is = outcome(op, contents[name], attrs);
    if (is != expected) all_faults += str_cat(op, " ", name, " ", attrs, ": ", is, " instead of ", expected, "\n");
    ++compared;
  }
  CHECK(all_faults.empty());
  if (!all_faults.empty()) WARN(all_faults);
  CHECK(compared >= 400);
}
