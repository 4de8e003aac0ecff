#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/data/sources.hpp>
#include <dflow/data/steps/interleave.hpp>
#include <dflow/data/steps/replayed_input.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow::data {

namespace detail {

class Interleave final : public Recipe {
 public:
  Interleave(SharedRecipe input, std::function<SharedRecipe(Item)> expand, InterleaveOptions options)
      : input_(std::move(input)), expand_(std::move(expand)), options_(options) {}

  std::unique_ptr<Stream> open(const PassContext& context) const override {
    return std::make_unique<Pass>(*this, context);
  }
  std::string describe() const override {
    return str_cat(input_->describe(), " | interleave(", options_.cycle, ", blocks of ", options_.block, ")");
  }

 private:
  struct Open {
    SharedRecipe recipe;
    std::unique_ptr<Stream> stream;
    std::uint64_t index = 0;  ///< of the element that it was made of
  };

  class Pass final : public Stream {
   public:
    Pass(const Interleave& interleave, const PassContext& context)
        : interleave_(interleave), context_(context), input_(interleave.input_->open(context), 64) {}

    bool next(Item& item) override {
      while (make_current()) {
        const auto at = open_.find(current_);
        if (at->second.stream->next(item)) {
          if (++in_block_ == interleave_.options_.block) turn();
          return true;
        }
        indices_.erase(at->second.index);
        open_.erase(at);
        turn();
      }
      return false;
    }

    void save(ByteWriter& out) const override {
      out.boolean(has_ended_);
      out.varint(current_);
      out.varint(in_block_);
      out.count(open_.size());
      for (const auto& [place, each] : open_) {
        out.varint(place);
        out.varint(each.index);
      }
      input_.save(out, oldest());
      for (const auto& [place, each] : open_) each.stream->save(out);
    }

    void restore(ByteReader& in) override {
      has_ended_ = in.boolean();
      current_ = in.varint();
      in_block_ = in.varint();
      const std::size_t count = in.count(2);
      const InterleaveOptions& options = interleave_.options_;
      bool is_there = count <= options.cycle && current_ < options.cycle && in_block_ < options.block;
      std::vector<std::pair<std::uint64_t, Open*>> opened;
      opened.reserve(count);
      for (std::size_t i = 0; is_there && i < count; ++i) {
        const std::uint64_t place = in.varint(), index = in.varint();
        const auto [at, is_new] = open_.try_emplace(place);
        is_there = is_new && place < options.cycle && std::next(at) == open_.end();
        at->second.index = index;
        indices_.insert(index);
        opened.emplace_back(index, &at->second);
      }
      if (!is_there)
        throw_error(Status::data_loss("an iterator's state has a place that its interleave does not have"));
      std::sort(opened.begin(), opened.end());
      input_.restore(
          in, endless, count, [&](std::size_t i) { return opened[i].first; },
          [&](std::size_t i, Item item) { begin(*opened[i].second, std::move(item)); });
      for (auto& [place, each] : open_) each.stream->restore(in);
    }

   private:
    /// Something is open at the current place; false where nothing is left.
    bool make_current() {
      if (open_.contains(current_) || open_next()) return true;
      const auto after = open_.upper_bound(current_);
      const auto at = after != open_.end() ? after : open_.begin();
      if (at == open_.end()) return false;
      current_ = at->first;
      in_block_ = 0;
      return true;
    }
    /// Opens the stream of the next input element at the current place.
    bool open_next() {
      if (has_ended_) return false;
      if (input_.is_due()) input_.forget_before(oldest());
      Open opened;
      opened.index = input_.position();
      Item item;
      has_ended_ = !input_.next(item);
      if (has_ended_) return false;
      begin(opened, std::move(item));
      indices_.insert(opened.index);
      open_.emplace(current_, std::move(opened));
      return true;
    }
    void begin(Open& opened, Item item) {
      if (!item.is_failure()) {
        context_.make(item, interleave_.name(), opened.index,
                      [&] { opened.recipe = interleave_.expand_(std::move(item)); });
      }
      if (item.is_failure()) opened.recipe = failed_source(std::move(item));
      opened.stream = opened.recipe->open(context_);
    }
    void turn() {
      in_block_ = 0;
      current_ = (current_ + 1) % interleave_.options_.cycle;
    }
    std::uint64_t oldest() const { return indices_.empty() ? input_.position() : *indices_.begin(); }

    const Interleave& interleave_;
    PassContext context_;
    ReplayedInput input_;
    std::map<std::uint64_t, Open> open_;  ///< by their places; there may be far more places
    std::set<std::uint64_t> indices_;     ///< of the open elements
    std::uint64_t current_ = 0, in_block_ = 0;
    bool has_ended_ = false;
  };

  /// As the dataset's function is called.
  std::string_view name() const noexcept { return options_.cycle == 1 ? "flat_map" : "interleave"; }

  SharedRecipe input_;
  std::function<SharedRecipe(Item)> expand_;
  InterleaveOptions options_;
};

}  // namespace detail

SharedRecipe interleave_recipe(SharedRecipe input, std::function<SharedRecipe(Item)> expand,
                               InterleaveOptions options) {
  require_count("the cycle of interleave", options.cycle);
  require_count("the block of interleave", options.block);
  return std::make_shared<detail::Interleave>(std::move(input), std::move(expand), options);
}

}  // namespace dflow::data
