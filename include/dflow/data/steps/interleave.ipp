#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/data/steps/interleave.hpp>
#include <dflow/data/steps/replayed_input.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace dflow::data {

namespace detail {

class Interleave final : public Recipe {
 public:
  Interleave(SharedRecipe input, std::function<SharedRecipe(Item)> expand, InterleaveOptions options)
      : input_(std::move(input)), expand_(std::move(expand)), options_(options) {}

  std::unique_ptr<Stream> open(std::uint64_t epoch) const override {
    return std::make_unique<Pass>(*this, input_->open(epoch), epoch);
  }
  std::string describe() const override {
    return str_cat(input_->describe(), " | interleave(", options_.cycle, ", ", options_.block, ")");
  }

 private:
  struct Open {
    SharedRecipe recipe;
    std::unique_ptr<Stream> stream;  ///< null: the place is free
    std::uint64_t index = 0;         ///< of the element that it was made of
  };

  class Pass final : public Stream {
   public:
    Pass(const Interleave& interleave, std::unique_ptr<Stream> input, std::uint64_t epoch)
        : interleave_(interleave), epoch_(epoch), input_(std::move(input), 64) {}

    bool next(Item& item) override {
      while (make_current()) {
        if (open_[current_].stream->next(item)) {
          if (++in_block_ == interleave_.options_.block) turn();
          return true;
        }
        open_[current_].stream.reset();
        open_[current_].recipe.reset();
        turn();
      }
      return false;
    }

    void save(ByteWriter& out) const override {
      out.boolean(has_ended_);
      out.varint(current_);
      out.varint(in_block_);
      out.count(open_.size());
      for (const Open& each : open_) {
        out.boolean(each.stream != nullptr);
        if (each.stream) out.varint(each.index);
      }
      input_.save(out, oldest());
      for (const Open& each : open_) {
        if (each.stream) each.stream->save(out);
      }
    }

    void restore(ByteReader& in) override {
      has_ended_ = in.boolean();
      current_ = in.varint();
      in_block_ = in.varint();
      const std::size_t count = in.count(1);
      const InterleaveOptions& options = interleave_.options_;
      if (count > options.cycle || current_ >= options.cycle || current_ > count || in_block_ >= options.block) {
        throw_error(data_loss("an iterator's state has a place that its interleave does not have"));
      }
      open_.resize(count);
      std::vector<std::pair<std::uint64_t, Open*>> places;
      for (Open& each : open_) {
        if (in.boolean()) places.emplace_back(each.index = in.varint(), &each);
      }
      std::sort(places.begin(), places.end());
      std::vector<std::uint64_t> indices;
      indices.reserve(places.size());
      for (const auto& place : places) indices.push_back(place.first);
      input_.restore(in, endless, indices,
                     [&](std::size_t i, Item item) { begin(*places[i].second, std::move(item)); });
      for (const Open& each : open_) {
        if (each.stream) each.stream->restore(in);
      }
    }

   private:
    /// Something is open at the current place; false where nothing is left.
    bool make_current() {
      for (std::uint64_t turns = 0; turns <= open_.size(); ++turns) {
        if (current_ == open_.size() && !has_ended_) open_.emplace_back();
        if (current_ < open_.size() && (open_[current_].stream || open_next(open_[current_]))) return true;
        if (open_.empty()) return false;
        turn();
      }
      return false;
    }
    bool open_next(Open& place) {
      if (has_ended_) return false;
      if (input_.is_due()) input_.forget_before(oldest());
      place.index = input_.position();
      Item item;
      has_ended_ = !input_.next(item);
      if (!has_ended_) begin(place, std::move(item));
      return !has_ended_;
    }
    void begin(Open& place, Item item) {
      place.recipe = interleave_.expand_(std::move(item));
      place.stream = place.recipe->open(epoch_);
    }
    void turn() {
      in_block_ = 0;
      current_ = (current_ + 1) % interleave_.options_.cycle;
      if (has_ended_ && current_ >= open_.size()) current_ = 0;
    }
    std::uint64_t oldest() const {
      std::uint64_t least = input_.position();
      for (const Open& each : open_) {
        if (each.stream) least = std::min(least, each.index);
      }
      return least;
    }

    const Interleave& interleave_;
    std::uint64_t epoch_;
    ReplayedInput input_;
    std::vector<Open> open_;
    std::uint64_t current_ = 0, in_block_ = 0;
    bool has_ended_ = false;
  };

  SharedRecipe input_;
  std::function<SharedRecipe(Item)> expand_;
  InterleaveOptions options_;
};

}  // namespace detail

DFLOW_INLINE SharedRecipe interleave_recipe(SharedRecipe input, std::function<SharedRecipe(Item)> expand,
                                            InterleaveOptions options) {
  if (options.cycle == 0 || options.block == 0) {
    throw_error(invalid_argument("data: interleave needs a cycle and a block of at least one"));
  }
  return std::make_shared<detail::Interleave>(std::move(input), std::move(expand), options);
}

}  // namespace dflow::data
