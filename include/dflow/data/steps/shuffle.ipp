#pragma once

#include <dflow/base/philox.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/data/read_position.hpp>
#include <dflow/data/steps/replayed_input.hpp>
#include <dflow/data/steps/shuffle.hpp>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

namespace dflow::data {

namespace detail {

class Shuffle final : public Recipe {
 public:
  Shuffle(SharedRecipe input, std::uint64_t buffer, ShuffleOptions options)
      : input_(std::move(input)), buffer_(buffer), options_(options) {}

  std::unique_ptr<Stream> open(const PassContext& context) const override {
    return std::make_unique<Pass>(*this, input_->open(context), options_.reshuffle ? context.epoch : 0);
  }
  std::optional<std::uint64_t> size() const override { return input_->size(); }
  std::string describe() const override {
    return str_cat(input_->describe(), " | shuffle(", buffer_, ", seed ", options_.seed,
                   options_.reshuffle ? ")" : ", once)");
  }

 private:
  struct Held {
    Item item;
    std::uint64_t index;
  };

  class Pass final : public Stream {
   public:
    Pass(const Shuffle& shuffle, std::unique_ptr<Stream> input, std::uint64_t epoch)
        : shuffle_(shuffle),
          input_(std::move(input), std::max<std::uint64_t>(shuffle.buffer_, 64)),
          random_(PhiloxStream::from_seeds(shuffle.options_.seed, epoch)) {}

    bool next(Item& item) override {
      fill();
      if (held_.empty()) return false;
      Held& given = held_[draw(held_.size())];
      item = std::move(given.item);
      given = std::move(held_.back());
      held_.pop_back();
      return true;
    }

    void save(ByteWriter& out) const override {
      out.varint(draws_);
      out.boolean(has_ended_);
      out.count(held_.size());
      for (const Held& each : held_) out.varint(each.index);
      input_.save(out, oldest());
    }

    void restore(ByteReader& in) override {
      draws_ = read_position(in);
      random_.skip(draws_);
      has_ended_ = in.boolean();
      const std::size_t count = in.count(1);
      if (count > shuffle_.buffer_) {
        throw_error(Status::data_loss(
            str_cat("an iterator's state holds ", count, " elements in a buffer of ", shuffle_.buffer_)));
      }
      held_.resize(count);
      for (Held& each : held_) each.index = in.varint();
      std::vector<std::size_t> places(count);
      std::iota(places.begin(), places.end(), std::size_t{0});
      std::sort(places.begin(), places.end(),
                [&](std::size_t a, std::size_t b) { return held_[a].index < held_[b].index; });
      input_.restore(
          in, most_replayed(), count, [&](std::size_t i) { return held_[places[i]].index; },
          [&](std::size_t i, Item item) { held_[places[i]].item = std::move(item); });
    }

   private:
    void fill() {
      Item item;
      while (!has_ended_ && held_.size() < shuffle_.buffer_) {
        if (input_.is_due()) input_.forget_before(oldest());
        const std::uint64_t index = input_.position();
        has_ended_ = !input_.next(item);
        if (!has_ended_) held_.push_back({std::move(item), index});
      }
    }
    std::uint64_t oldest() const {
      std::uint64_t least = input_.position();
      for (const Held& each : held_) least = std::min(least, each.index);
      return least;
    }
    /// An element is held for another step with the chance 1 - 1/buffer: none is ever so old (e^-255).
    std::uint64_t most_replayed() const {
      constexpr std::uint64_t times = 256;
      const std::uint64_t buffer = std::max<std::uint64_t>(shuffle_.buffer_, 64);
      return buffer > endless / times ? endless : buffer * times;
    }
    /// In [0, n), from 64 random bits: the bias is at most n * 2^-64.
    std::size_t draw(std::size_t n) {
      const PhiloxWords words = random_.next();
      ++draws_;
      const std::uint64_t bits = words[0] | std::uint64_t{words[1]} << 32;
      return static_cast<std::size_t>(static_cast<unsigned __int128>(bits) * n >> 64);
    }

    const Shuffle& shuffle_;
    ReplayedInput input_;
    PhiloxStream random_;
    std::uint64_t draws_ = 0;
    std::vector<Held> held_;
    bool has_ended_ = false;
  };

  SharedRecipe input_;
  std::uint64_t buffer_;
  ShuffleOptions options_;
};

}  // namespace detail

SharedRecipe shuffle_recipe(SharedRecipe input, std::uint64_t buffer, ShuffleOptions options) {
  require_count("the buffer of shuffle", buffer);
  return std::make_shared<detail::Shuffle>(std::move(input), buffer, options);
}

}  // namespace dflow::data
