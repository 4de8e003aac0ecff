// A user's program with the component image: encodes, decodes in a graph and decodes by hand.
#include <dflow/dflow.hpp>
#include <dflow/image/image.hpp>

#include <cstdint>
#include <cstdio>
#include <string>

namespace df = dflow;

int main() {
  const df::Tensor<std::uint8_t> red({1, 2, 3}, {255, 0, 0, 255, 0, 0});
  const std::string png = df::image::encode_png(red), jpeg = df::image::encode_jpeg(red);

  // [image]
  df::Graph graph;
  auto contents = df::placeholder<std::string>(graph, {});                     // the bytes of a file
  auto pixels = df::image::decode_image<float>(contents, {.channels = 3});     // [height, width, 3] in 0 to 1
  auto small = df::image::decode_jpeg(contents, {.channels = 3, .ratio = 2});  // uint8, half as high and as wide
  df::Session session(graph, {.ops = df::standard_ops + df::image_ops});

  df::Tensor<float> value = session.run({{contents, png}}, pixels);
  df::Tensor<std::uint8_t> half = session.run({{contents, jpeg}}, small);
  df::Tensor<std::uint8_t> same = df::image::decode_png(png);  // without a graph, as in a dataset's map
  // [image]

  std::printf("image: %g\n", static_cast<double>(value(0, 1, 0)));
  return value(0, 1, 0) == 1.0f && half.shape() == df::Shape{1, 1, 3} && bitwise_equal(same, red) ? 0 : 1;
}
