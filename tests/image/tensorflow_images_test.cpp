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

dflow::EncodeJpeg::Attrs encoder_attrs(std::map<std::string, std::string> given) {
  dflow::EncodeJpeg::Attrs attrs;
  attrs.format = given["format"];
  if (given.contains("quality")) attrs.quality = std::stoi(given["quality"]);
  attrs.progressive = given["progressive"] == "1";
  attrs.optimize_size = given["optimize_size"] == "1";
  attrs.chroma_downsampling = given["chroma_downsampling"] != "0";
  if (given.contains("density_unit")) attrs.density_unit = given["density_unit"];
  if (given.contains("x_density")) attrs.x_density = std::stoi(given["x_density"]);
  if (given.contains("y_density")) attrs.y_density = std::stoi(given["y_density"]);
  attrs.xmp_metadata = given["xmp_metadata"];
  return attrs;
}

/// 64 bits of the hash.
std::string hash_of(std::span<const std::byte> bytes) {
  const dflow::Sha256Digest digest = dflow::sha256(bytes);
  std::string text;
  for (int i = 0; i < 8; ++i) {
    for (const int digit : {static_cast<int>(digest[i]) / 16, static_cast<int>(digest[i]) % 16}) {
      text += "0123456789abcdef"[digit];
    }
  }
  return text;
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

/// As a line of the file says it: the shape and the hash, or "refused"; of a file its size and the hash.
std::string outcome(const std::string& op, const std::string& contents, const std::string& attrs) {
  if (op == "EncodeJpeg") {
    const auto pixels = dflow::image::decode_jpeg(contents, {.dct_method = "INTEGER_ACCURATE"});
    const std::string file = dflow::image::encode_jpeg(pixels, encoder_attrs(attrs_of(attrs)));
    return str_cat(file.size(), " ", hash_of(std::as_bytes(std::span(file))));
  }
  dflow::AnyTensor pixels;
  try {
    pixels = decoded(op, contents, attrs_of(attrs));
  } catch (const dflow::Error& error) {
    CHECK(error.code() == dflow::Code::invalid_argument);
    return "refused";
  }
  const auto* const bytes = static_cast<const std::byte*>(pixels.raw_data());
  return str_cat(pixels.dim(0), "x", pixels.dim(1), "x", pixels.dim(2), " ", hash_of(std::span(bytes, pixels.bytes())));
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
