#pragma once

#include <dflow/trace/layered_layout.hpp>

#include <algorithm>
#include <map>
#include <numeric>

namespace dflow::detail {

inline constexpr double layout_gap = 18;         ///< between neighbours of a layer
inline constexpr double layout_layer_gap = 34;   ///< between layers
inline constexpr double layout_padding = 12;     ///< inside of a box
inline constexpr double layout_label_room = 20;  ///< above what a box holds
inline constexpr double layout_row_width = 1400;
/// Edges that pass more layers than this, all together, go straight.
inline constexpr std::size_t layout_max_bends = 20'000;

/// The inside of one box: its elements, which are nodes and boxes, by their positions in it.
struct LayoutLevel {
  std::vector<std::size_t> elements;  ///< nodes, and behind them boxes: `num_nodes + box`
  std::vector<DrawnRect> rects;       ///< of each, inside of this box
  std::map<std::pair<std::size_t, std::size_t>, std::vector<DrawnPoint>> bends;  ///< of edges between two of them
  std::map<std::size_t, std::vector<DrawnPoint>> enters;  ///< of edges from above the box to one of them
  std::map<std::size_t, std::vector<DrawnPoint>> leaves;  ///< of edges from one of them to below the box
  double width = 0;
  double height = 0;
};

/// Puts the elements of one level into layers.
class LevelLayout {
 public:
  explicit LevelLayout(LayoutLevel& level) : level_(level), num_elements_(level.elements.size()) {}

  void run() {
    order_edges();
    choose_layers();
    add_bends();
    sort_layers();
    place();
    place_unconnected();
    for (const Cell& cell : cells_) level_.width = std::max(level_.width, cell.x + cell.width / 2);
    for (std::size_t i = 0; i < num_elements_; ++i) {
      level_.width = std::max(level_.width, level_.rects[i].x + level_.rects[i].width);
      level_.height = std::max(level_.height, level_.rects[i].y + level_.rects[i].height);
    }
  }

 private:
  struct Cell {
    double width = 0;
    double x = 0;  ///< of its middle
    std::vector<std::size_t> above, below;
  };

  /// Leads each edge downwards: one that closes a cycle, as a walk in the order of the elements finds it, is turned.
  void order_edges() {
    std::vector<std::vector<std::size_t>> next(num_elements_);
    for (const auto& [edge, unused] : level_.bends) next[edge.first].push_back(edge.second);
    enum State : std::uint8_t { unseen, open, done };
    std::vector<State> state(num_elements_, unseen);
    std::vector<std::pair<std::size_t, std::size_t>> walk;
    for (std::size_t start = 0; start < num_elements_; ++start) {
      if (state[start] != unseen) continue;
      walk.emplace_back(start, 0);
      state[start] = open;
      while (!walk.empty()) {
        auto& [at, i] = walk.back();
        if (i == next[at].size()) {
          state[at] = done;
          walk.pop_back();
          continue;
        }
        const std::size_t to = next[at][i++];
        const bool is_back = state[to] == open;
        edges_.push_back({is_back ? to : at, is_back ? at : to, is_back});
        if (state[to] != unseen) continue;
        state[to] = open;
        walk.emplace_back(to, 0);
      }
    }
  }

  /// The longest way from an element without inputs; those are as low as their readers allow.
  void choose_layers() {
    layer_.assign(num_elements_, 0);
    std::vector<std::vector<std::size_t>> below(num_elements_);
    std::vector<std::size_t> pending(num_elements_, 0);
    for (const Edge& edge : edges_) {
      below[edge.from].push_back(edge.to);
      ++pending[edge.to];
    }
    std::vector<std::size_t> ready;
    std::vector<bool> is_first(num_elements_, false);
    for (std::size_t i = 0; i < num_elements_; ++i) {
      if (pending[i] != 0) continue;
      ready.push_back(i);
      is_first[i] = true;
    }
    for (std::size_t r = 0; r < ready.size(); ++r) {
      for (const std::size_t to : below[ready[r]]) {
        layer_[to] = std::max(layer_[to], layer_[ready[r]] + 1);
        if (--pending[to] == 0) ready.push_back(to);
      }
    }
    for (std::size_t i = 0; i < num_elements_; ++i) {
      if (!is_first[i] || below[i].empty()) continue;
      std::size_t lowest = layer_[below[i].front()];
      for (const std::size_t to : below[i]) lowest = std::min(lowest, layer_[to]);
      layer_[i] = lowest - 1;
    }
    is_connected_.assign(num_elements_, false);
    for (const Edge& edge : edges_) is_connected_[edge.from] = is_connected_[edge.to] = true;
    for (const auto& [element, unused] : level_.enters) is_connected_[element] = true;
    for (const auto& [element, unused] : level_.leaves) is_connected_[element] = true;
  }

  /// Makes a cell for each element, and for each layer that an edge passes.
  void add_bends() {
    std::size_t num_bends = 0, num_layers = 0;
    for (std::size_t i = 0; i < num_elements_; ++i) num_layers = std::max(num_layers, layer_[i] + 1);
    for (const Edge& edge : edges_) num_bends += layer_[edge.to] - layer_[edge.from] - 1;
    for (const auto& [element, unused] : level_.enters) num_bends += layer_[element];
    for (const auto& [element, unused] : level_.leaves) num_bends += num_layers - 1 - layer_[element];
    cells_.resize(num_elements_);
    for (std::size_t i = 0; i < num_elements_; ++i) {
      cells_[i].width = level_.rects[i].width;
      if (is_connected_[i]) cells_of(layer_[i]).push_back(i);
    }
    const bool bends = num_bends <= layout_max_bends;
    for (Edge& edge : edges_) {
      if (bends) edge.bends = chain(layer_[edge.from] + 1, layer_[edge.to]);
      std::size_t above = edge.from;
      for (const std::size_t bend : edge.bends) {
        join(above, bend);
        above = bend;
      }
      join(above, edge.to);
    }
    if (!bends) return;
    for (const auto& [element, unused] : level_.enters) {
      borders_.push_back({element, true, chain(0, layer_[element])});
      if (!borders_.back().bends.empty()) join(borders_.back().bends.back(), element);
    }
    for (const auto& [element, unused] : level_.leaves) {
      borders_.push_back({element, false, chain(layer_[element] + 1, num_layers)});
      if (!borders_.back().bends.empty()) join(element, borders_.back().bends.front());
    }
    for (const Border& border : borders_) {
      for (std::size_t i = 1; i < border.bends.size(); ++i) join(border.bends[i - 1], border.bends[i]);
    }
  }
  /// A cell in each of these layers.
  std::vector<std::size_t> chain(std::size_t begin, std::size_t end) {
    std::vector<std::size_t> bends;
    for (std::size_t layer = begin; layer < end; ++layer) {
      bends.push_back(cells_.size());
      cells_of(layer).push_back(cells_.size());
      cells_.push_back({4, 0, {}, {}});
    }
    return bends;
  }
  std::vector<std::size_t>& cells_of(std::size_t layer) {
    if (layers_.size() <= layer) layers_.resize(layer + 1);
    return layers_[layer];
  }
  void join(std::size_t above, std::size_t below) {
    cells_[above].below.push_back(below);
    cells_[below].above.push_back(above);
  }

  /// Barycentres, downwards and upwards in turn, so that fewer edges cross.
  void sort_layers() {
    constexpr int sweeps = 8;
    std::vector<double> position(cells_.size());
    const auto number = [&](const std::vector<std::size_t>& layer) {
      for (std::size_t i = 0; i < layer.size(); ++i) position[layer[i]] = static_cast<double>(i);
    };
    for (const auto& layer : layers_) number(layer);
    for (int sweep = 0; sweep < sweeps; ++sweep) {
      const bool goes_down = sweep % 2 == 0;
      for (std::size_t i = 0; i < layers_.size(); ++i) {
        std::vector<std::size_t>& layer = layers_[goes_down ? i : layers_.size() - 1 - i];
        std::vector<double> wanted(layer.size());
        std::vector<std::size_t> order(layer.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        for (std::size_t k = 0; k < layer.size(); ++k) {
          const Cell& cell = cells_[layer[k]];
          wanted[k] = mean(goes_down ? cell.above : cell.below, position[layer[k]],
                           [&](std::size_t neighbour) { return position[neighbour]; });
        }
        std::stable_sort(order.begin(), order.end(),
                         [&](std::size_t a, std::size_t b) { return wanted[a] < wanted[b]; });
        std::vector<std::size_t> sorted;
        sorted.reserve(layer.size());
        for (const std::size_t k : order) sorted.push_back(layer[k]);
        layer = std::move(sorted);
        number(layer);
      }
    }
  }

  template <class Value>
  static double mean(const std::vector<std::size_t>& cells, double otherwise, Value value) {
    if (cells.empty()) return otherwise;
    double sum = 0;
    for (const std::size_t cell : cells) sum += value(cell);
    return sum / static_cast<double>(cells.size());
  }

  void place() {
    constexpr int sweeps = 12;
    for (const auto& layer : layers_) {
      double x = 0;
      for (const std::size_t cell : layer) {
        cells_[cell].x = x + cells_[cell].width / 2;
        x += cells_[cell].width + layout_gap;
      }
      for (const std::size_t cell : layer) cells_[cell].x -= x / 2;
    }
    for (int sweep = 0; sweep < sweeps; ++sweep) {
      for (std::size_t i = 0; i < layers_.size(); ++i)
        pull(layers_[sweep % 2 == 0 ? i : layers_.size() - 1 - i], sweep);
    }
    double left = 0;
    for (const auto& layer : layers_) {
      for (const std::size_t cell : layer) left = std::min(left, cells_[cell].x - cells_[cell].width / 2);
    }
    tops_.resize(cells_.size());
    double y = 0;
    for (const auto& layer : layers_) {
      double height = 0;
      for (const std::size_t cell : layer) {
        if (cell < num_elements_) height = std::max(height, level_.rects[cell].height);
      }
      for (const std::size_t cell : layer) {
        cells_[cell].x -= left;
        tops_[cell] = {y, height};
        if (cell >= num_elements_) continue;
        level_.rects[cell].x = cells_[cell].x - cells_[cell].width / 2;
        level_.rects[cell].y = y + (height - level_.rects[cell].height) / 2;
      }
      y += height + layout_layer_gap;
    }
    for (const Edge& edge : edges_) {
      std::vector<DrawnPoint> points = points_of(edge.bends);
      if (edge.is_turned) std::reverse(points.begin(), points.end());
      level_.bends[edge.is_turned ? std::pair(edge.to, edge.from) : std::pair(edge.from, edge.to)] = std::move(points);
    }
    for (const Border& border : borders_) {
      (border.is_above ? level_.enters : level_.leaves)[border.element] = points_of(border.bends);
    }
  }

  /// Moves the cells of a layer towards the middles of their neighbours as far as there is room.
  void pull(const std::vector<std::size_t>& layer, int sweep) {
    if (layer.empty()) return;
    const std::size_t count = layer.size();
    std::vector<double> wanted(count), from_left(count), from_right(count);
    for (std::size_t i = 0; i < count; ++i) {
      const Cell& cell = cells_[layer[i]];
      const bool looks_up = sweep % 2 == 0;
      wanted[i] = mean(looks_up ? cell.above : cell.below, cell.x, [&](std::size_t other) { return cells_[other].x; });
    }
    const auto apart = [&](std::size_t i) {
      return (cells_[layer[i]].width + cells_[layer[i + 1]].width) / 2 + layout_gap;
    };
    for (std::size_t i = 0; i < count; ++i) {
      from_left[i] = i == 0 ? wanted[i] : std::max(wanted[i], from_left[i - 1] + apart(i - 1));
    }
    for (std::size_t i = count; i-- > 0;) {
      from_right[i] = i + 1 == count ? wanted[i] : std::min(wanted[i], from_right[i + 1] - apart(i));
    }
    for (std::size_t i = 0; i < count; ++i) cells_[layer[i]].x = (from_left[i] + from_right[i]) / 2;
  }

  struct Edge {
    std::size_t from, to;
    bool is_turned;
    std::vector<std::size_t> bends = {};
  };

  /// An edge that crosses the border of the box.
  struct Border {
    std::size_t element;
    bool is_above;
    std::vector<std::size_t> bends;
  };

  /// At each layer that is passed, where that begins and where it ends.
  std::vector<DrawnPoint> points_of(const std::vector<std::size_t>& bends) const {
    std::vector<DrawnPoint> points;
    for (const std::size_t bend : bends) {
      points.push_back({cells_[bend].x, tops_[bend].first});
      points.push_back({cells_[bend].x, tops_[bend].first + tops_[bend].second});
    }
    return points;
  }

  /// What no edge joins to anything here stands below, in rows.
  void place_unconnected() {
    double below = 0, width = layout_row_width;
    for (std::size_t i = 0; i < num_elements_; ++i) {
      if (!is_connected_[i]) continue;
      below = std::max(below, level_.rects[i].y + level_.rects[i].height + layout_layer_gap);
      width = std::max(width, level_.rects[i].x + level_.rects[i].width);
    }
    double x = 0, y = below, height = 0;
    for (std::size_t i = 0; i < num_elements_; ++i) {
      if (is_connected_[i]) continue;
      DrawnRect& rect = level_.rects[i];
      if (x > 0 && x + rect.width > width) {
        y += height + layout_gap;
        x = height = 0;
      }
      rect.x = x;
      rect.y = y;
      x += rect.width + layout_gap;
      height = std::max(height, rect.height);
    }
  }

  LayoutLevel& level_;
  std::size_t num_elements_;
  std::vector<Edge> edges_;
  std::vector<Border> borders_;
  std::vector<std::size_t> layer_;
  std::vector<bool> is_connected_;
  std::vector<Cell> cells_;  ///< of elements, then of bends
  std::vector<std::pair<double, double>> tops_;
  std::vector<std::vector<std::size_t>> layers_;
};

/// Which level each node and box is in, and what each level holds.
class NestedLayout {
 public:
  NestedLayout(const Drawing& drawing, const LayoutSizes& sizes)
      : drawing_(drawing), sizes_(sizes), num_nodes_(drawing.nodes.size()), levels_(drawing.boxes.size() + 1) {}

  Layout run() {
    fill_levels();
    for (const Drawing::Edge& edge : drawing_.edges) note_edge(edge);
    for (std::size_t box = drawing_.boxes.size(); box-- > 0;) lay_out_box(box);
    LayoutLevel& outside = levels_.back();
    set_sizes(outside);
    LevelLayout(outside).run();
    put_in_place();
    return std::move(layout_);
  }

 private:
  std::size_t level_of(std::int32_t box) const { return box < 0 ? levels_.size() - 1 : static_cast<std::size_t>(box); }
  std::int32_t box_around(std::size_t element) const {
    return element < num_nodes_ ? drawing_.nodes[element].box : drawing_.boxes[element - num_nodes_].parent;
  }

  void fill_levels() {
    const std::size_t count = num_nodes_ + drawing_.boxes.size();
    position_.resize(count);
    depth_.assign(drawing_.boxes.size(), 1);
    for (std::size_t i = 0; i < drawing_.boxes.size(); ++i) {
      const std::int32_t parent = drawing_.boxes[i].parent;
      if (parent >= 0) depth_[i] = depth_[static_cast<std::size_t>(parent)] + 1;
    }
    // A box stands where the first of its nodes does.
    std::vector<bool> is_in(count, false);
    const auto put = [&](std::size_t element) {
      for (std::size_t at = element; !is_in[at];) {
        is_in[at] = true;
        LayoutLevel& level = levels_[level_of(box_around(at))];
        position_[at] = level.elements.size();
        level.elements.push_back(at);
        if (box_around(at) < 0) return;
        at = num_nodes_ + static_cast<std::size_t>(box_around(at));
      }
    };
    for (std::size_t element = 0; element < count; ++element) put(element);
  }

  std::size_t depth_of(std::int32_t box) const { return box < 0 ? 0 : depth_[static_cast<std::size_t>(box)]; }

  std::size_t box_element(std::size_t element) const {
    return num_nodes_ + static_cast<std::size_t>(box_around(element));
  }

  /// The elements that hold the ends of an edge, from the nodes outwards to two that are side by side.
  struct Ends {
    std::vector<std::size_t> from, to;
  };
  Ends ends_of(const Drawing::Edge& edge) const {
    std::size_t a = static_cast<std::size_t>(edge.from), b = static_cast<std::size_t>(edge.to);
    Ends ends{{a}, {b}};
    const auto up = [&](std::size_t& element, std::vector<std::size_t>& end) {
      element = box_element(element);
      end.push_back(element);
    };
    while (depth_of(box_around(a)) > depth_of(box_around(b))) up(a, ends.from);
    while (depth_of(box_around(b)) > depth_of(box_around(a))) up(b, ends.to);
    while (box_around(a) != box_around(b)) {
      up(a, ends.from);
      up(b, ends.to);
    }
    return ends;
  }
  LayoutLevel& level_around(std::size_t element) { return levels_[level_of(box_around(element))]; }
  void note_edge(const Drawing::Edge& edge) {
    if (edge.kind == Drawing::Edge::Kind::transfer || edge.from == edge.to) return;
    const Ends ends = ends_of(edge);
    for (std::size_t i = 0; i + 1 < ends.from.size(); ++i) {
      level_around(ends.from[i]).leaves.try_emplace(position_[ends.from[i]]);
    }
    for (std::size_t i = 0; i + 1 < ends.to.size(); ++i) {
      level_around(ends.to[i]).enters.try_emplace(position_[ends.to[i]]);
    }
    level_around(ends.from.back()).bends.try_emplace({position_[ends.from.back()], position_[ends.to.back()]});
  }

  void set_sizes(LayoutLevel& level) {
    for (const std::size_t element : level.elements) {
      level.rects.push_back(element < num_nodes_ ? sizes_.nodes[element] : box_sizes_[element - num_nodes_]);
    }
  }
  void lay_out_box(std::size_t box) {
    box_sizes_.resize(drawing_.boxes.size());
    LayoutLevel& level = levels_[box];
    set_sizes(level);
    LevelLayout(level).run();
    box_sizes_[box].width = std::max(level.width, sizes_.box_labels[box]) + 2 * layout_padding;
    box_sizes_[box].height = level.height + layout_label_room + layout_padding;
  }

  void put_in_place() {
    layout_.nodes.resize(num_nodes_);
    layout_.boxes.resize(drawing_.boxes.size());
    put_level(levels_.back(), {layout_padding, layout_padding});
    for (std::size_t box = 0; box < drawing_.boxes.size(); ++box) put_level(levels_[box], inside_of(box));
    for (const Drawing::Edge& edge : drawing_.edges) {
      std::vector<DrawnPoint>& bends = layout_.bends.emplace_back();
      if (edge.kind == Drawing::Edge::Kind::transfer || edge.from == edge.to) continue;
      const Ends ends = ends_of(edge);
      const auto add = [&](std::size_t element, const std::vector<DrawnPoint>& points) {
        const std::int32_t box = box_around(element);
        const DrawnPoint at = box < 0 ? DrawnPoint{layout_padding, layout_padding} : inside_of(level_of(box));
        for (const DrawnPoint point : points) bends.push_back({at.x + point.x, at.y + point.y});
      };
      for (std::size_t i = 0; i + 1 < ends.from.size(); ++i) {
        add(ends.from[i], level_around(ends.from[i]).leaves[position_[ends.from[i]]]);
      }
      const std::size_t from = ends.from.back(), to = ends.to.back();
      add(from, level_around(from).bends[{position_[from], position_[to]}]);
      for (std::size_t i = ends.to.size() - 1; i-- > 0;) {
        add(ends.to[i], level_around(ends.to[i]).enters[position_[ends.to[i]]]);
      }
    }
    layout_.width = levels_.back().width + 2 * layout_padding;
    layout_.height = levels_.back().height + 2 * layout_padding;
  }
  DrawnPoint inside_of(std::size_t box) const {
    return {layout_.boxes[box].x + layout_padding, layout_.boxes[box].y + layout_label_room};
  }
  void put_level(const LayoutLevel& level, DrawnPoint at) {
    for (std::size_t i = 0; i < level.elements.size(); ++i) {
      DrawnRect rect = level.rects[i];
      rect.x += at.x;
      rect.y += at.y;
      const std::size_t element = level.elements[i];
      (element < num_nodes_ ? layout_.nodes[element] : layout_.boxes[element - num_nodes_]) = rect;
    }
  }

  const Drawing& drawing_;
  const LayoutSizes& sizes_;
  std::size_t num_nodes_;
  std::vector<LayoutLevel> levels_;    ///< by box; the last is outside of all
  std::vector<std::size_t> position_;  ///< of each node and box in its level
  std::vector<std::size_t> depth_;     ///< of each box
  std::vector<DrawnRect> box_sizes_;
  Layout layout_;
};

Layout layered_layout(const Drawing& drawing, const LayoutSizes& sizes) { return NestedLayout(drawing, sizes).run(); }

}  // namespace dflow::detail
