#include <dflow/trace/layered_layout.hpp>

#include "catch.hpp"

#include <cstdint>
#include <random>
#include <vector>

using dflow::Drawing;
using dflow::detail::DrawnRect;
using dflow::detail::Layout;

namespace {

Layout laid_out(const Drawing& drawing) {
  dflow::detail::LayoutSizes sizes;
  sizes.nodes.assign(drawing.nodes.size(), {0, 0, 40, 20});
  sizes.box_labels.assign(drawing.boxes.size(), 30);
  return dflow::detail::layered_layout(drawing, sizes);
}

bool is_inside(const DrawnRect& rect, const DrawnRect& of) {
  return rect.x >= of.x && rect.y >= of.y && rect.x + rect.width <= of.x + of.width &&
         rect.y + rect.height <= of.y + of.height;
}
bool overlap(const DrawnRect& a, const DrawnRect& b) {
  return a.x < b.x + b.width - 0.01 && b.x < a.x + a.width - 0.01 && a.y < b.y + b.height - 0.01 &&
         b.y < a.y + a.height - 0.01;
}

}  // namespace

TEST_CASE("edges lead downwards, and a constant stands just above what reads it") {
  Drawing drawing;
  drawing.nodes.resize(5);
  drawing.edges = {{0, 1}, {1, 2}, {2, 3}, {4, 3}, {0, 3}};
  const Layout layout = laid_out(drawing);
  for (const Drawing::Edge& edge : drawing.edges) {
    CHECK(layout.nodes[static_cast<std::size_t>(edge.from)].y < layout.nodes[static_cast<std::size_t>(edge.to)].y);
  }
  CHECK(layout.nodes[4].y == layout.nodes[2].y);
  CHECK(layout.bends[4].size() == 4);  // the long one passes two layers
  CHECK(layout.bends[0].empty());
}

TEST_CASE("in random drawings nothing overlaps, and everything is inside of its box") {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const auto draw = [&](std::int32_t end) {
      return static_cast<std::int32_t>(random() % static_cast<unsigned>(end));
    };
    Drawing drawing;
    const std::int32_t num_boxes = draw(8), num_nodes = 1 + draw(40);
    for (std::int32_t i = 0; i < num_boxes; ++i) drawing.boxes.push_back({"", {}, draw(i + 1) - 1});
    for (std::int32_t i = 0; i < num_nodes; ++i) {
      drawing.nodes.emplace_back();
      drawing.nodes.back().box = draw(num_boxes + 1) - 1;
    }
    for (std::int32_t i = draw(80); i > 0; --i) drawing.edges.push_back({draw(num_nodes), draw(num_nodes)});
    const Layout layout = laid_out(drawing);
    REQUIRE(layout.bends.size() == drawing.edges.size());
    const DrawnRect all{0, 0, layout.width, layout.height};
    for (std::size_t i = 0; i < drawing.boxes.size(); ++i) {
      const std::int32_t parent = drawing.boxes[i].parent;
      CHECK(is_inside(layout.boxes[i], parent < 0 ? all : layout.boxes[static_cast<std::size_t>(parent)]));
    }
    for (std::size_t i = 0; i < drawing.nodes.size(); ++i) {
      const std::int32_t box = drawing.nodes[i].box;
      CHECK(is_inside(layout.nodes[i], box < 0 ? all : layout.boxes[static_cast<std::size_t>(box)]));
      for (std::size_t j = 0; j < i; ++j) CHECK_FALSE(overlap(layout.nodes[i], layout.nodes[j]));
      for (std::size_t j = 0; j < drawing.boxes.size(); ++j) {
        if (drawing.boxes[j].parent == box && static_cast<std::int32_t>(j) != box) {
          CHECK_FALSE(overlap(layout.nodes[i], layout.boxes[j]));
        }
      }
    }
    for (const auto& bends : layout.bends) {
      for (const auto& bend : bends) CHECK(is_inside({bend.x, bend.y, 0, 0}, all));
    }
  }
}
