#pragma once

#include <dflow/base/spread_bits.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/data/read_position.hpp>
#include <dflow/data/steps/transforms.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace dflow::data {

namespace detail {

/// A stream that is a function of another one's elements and position.
class InputStream : public Stream {
 public:
  explicit InputStream(std::unique_ptr<Stream> input) : input_(std::move(input)) {}
  void save(ByteWriter& out) const override { input_->save(out); }
  void restore(ByteReader& in) override { input_->restore(in); }

 protected:
  std::unique_ptr<Stream> input_;
};

class Map final : public Recipe {
 public:
  Map(SharedRecipe input, std::function<Item(Item)> apply) : input_(std::move(input)), apply_(std::move(apply)) {}

  std::unique_ptr<Stream> open(const PassContext& context) const override {
    return std::make_unique<Pass>(context, *this);
  }
  std::optional<std::uint64_t> size() const override { return input_->size(); }
  std::string describe() const override { return input_->describe() + " | map"; }

 private:
  /// Its state is the state of a map with threads that has read nothing ahead.
  class Pass final : public InputStream {
   public:
    Pass(const PassContext& context, const Map& map)
        : InputStream(map.input_->open(context)), context_(context), map_(map) {}
    bool next(Item& item) override {
      if (!input_->next(item)) return false;
      const std::uint64_t number = position_++;
      if (!item.is_failure()) context_.make(item, "map", number, [&] { item = map_.apply_(std::move(item)); });
      return true;
    }
    std::uint64_t skip(std::uint64_t n) override {
      const std::uint64_t passed = input_->skip(n);
      position_ += passed;
      return passed;
    }
    void save(ByteWriter& out) const override {
      out.varint(position_);
      out.varint(0);
      input_->save(out);
    }
    void restore(ByteReader& in) override {
      position_ = read_position(in);
      const std::uint64_t ahead = read_replayed(in, max_read_ahead);
      input_->restore(in);
      replay(*input_, ahead);
    }

   private:
    PassContext context_;
    const Map& map_;
    std::uint64_t position_ = 0;
  };

  SharedRecipe input_;
  std::function<Item(Item)> apply_;
};

class Filter final : public Recipe {
 public:
  Filter(SharedRecipe input, std::function<bool(const Item&)> keeps)
      : input_(std::move(input)), keeps_(std::move(keeps)) {}

  std::unique_ptr<Stream> open(const PassContext& context) const override {
    return std::make_unique<Pass>(context, *this);
  }
  std::string describe() const override { return input_->describe() + " | filter"; }

 private:
  class Pass final : public InputStream {
   public:
    Pass(const PassContext& context, const Filter& filter)
        : InputStream(filter.input_->open(context)), context_(context), filter_(filter) {}
    bool next(Item& item) override {
      while (input_->next(item)) {
        bool keeps = true;
        const std::uint64_t number = position_++;
        if (!item.is_failure()) context_.make(item, "filter", number, [&] { keeps = filter_.keeps_(item); });
        if (keeps) return true;
      }
      return false;
    }
    void save(ByteWriter& out) const override {
      out.varint(position_);
      input_->save(out);
    }
    void restore(ByteReader& in) override {
      position_ = read_position(in);
      input_->restore(in);
    }

   private:
    PassContext context_;
    const Filter& filter_;
    std::uint64_t position_ = 0;  ///< of the input
  };

  SharedRecipe input_;
  std::function<bool(const Item&)> keeps_;
};

class Take final : public Recipe {
 public:
  Take(SharedRecipe input, std::uint64_t n) : input_(std::move(input)), n_(n) {}

  std::unique_ptr<Stream> open(const PassContext& context) const override {
    return std::make_unique<Pass>(input_->open(context), n_);
  }
  std::optional<std::uint64_t> size() const override {
    const std::optional<std::uint64_t> all = input_->size();
    return all ? std::optional(std::min(*all, n_)) : std::nullopt;
  }
  std::string describe() const override { return str_cat(input_->describe(), " | take(", n_, ")"); }

 private:
  class Pass final : public InputStream {
   public:
    Pass(std::unique_ptr<Stream> input, std::uint64_t n) : InputStream(std::move(input)), n_(n), left_(n) {}
    bool next(Item& item) override {
      if (left_ == 0) return false;
      if (!input_->next(item)) return left_ = 0, false;
      --left_;
      return true;
    }
    std::uint64_t skip(std::uint64_t n) override {
      const std::uint64_t passed = input_->skip(std::min(n, left_));
      left_ = passed < n ? 0 : left_ - passed;
      return passed;
    }
    void save(ByteWriter& out) const override {
      out.varint(left_);
      input_->save(out);
    }
    void restore(ByteReader& in) override {
      left_ = in.varint();
      if (left_ > n_) throw_error(Status::data_loss("an iterator's state has more to take than there was"));
      input_->restore(in);
    }

   private:
    std::uint64_t n_, left_;
  };

  SharedRecipe input_;
  std::uint64_t n_;
};

class Skip final : public Recipe {
 public:
  Skip(SharedRecipe input, std::uint64_t n) : input_(std::move(input)), n_(n) {}

  std::unique_ptr<Stream> open(const PassContext& context) const override {
    return std::make_unique<Pass>(input_->open(context), n_);
  }
  std::optional<std::uint64_t> size() const override {
    const std::optional<std::uint64_t> all = input_->size();
    return all && *all != endless ? std::optional(*all - std::min(*all, n_)) : all;
  }
  std::string describe() const override { return str_cat(input_->describe(), " | skip(", n_, ")"); }

 private:
  class Pass final : public InputStream {
   public:
    Pass(std::unique_ptr<Stream> input, std::uint64_t n) : InputStream(std::move(input)), n_(n) {}
    bool next(Item& item) override { return begin(), input_->next(item); }
    std::uint64_t skip(std::uint64_t n) override { return begin(), input_->skip(n); }
    void save(ByteWriter& out) const override {
      out.boolean(has_begun_);
      input_->save(out);
    }
    void restore(ByteReader& in) override {
      has_begun_ = in.boolean();
      input_->restore(in);
    }

   private:
    void begin() {
      if (!std::exchange(has_begun_, true)) input_->skip(n_);
    }

    std::uint64_t n_;
    bool has_begun_ = false;
  };

  SharedRecipe input_;
  std::uint64_t n_;
};

class Repeat final : public Recipe {
 public:
  Repeat(SharedRecipe input, std::optional<std::uint64_t> n) : input_(std::move(input)), n_(n) {}

  std::unique_ptr<Stream> open(const PassContext& context) const override {
    return std::make_unique<Pass>(*this, context);
  }
  std::optional<std::uint64_t> size() const override {
    const std::optional<std::uint64_t> all = input_->size();
    if (all == std::uint64_t{0}) return all;
    return all ? std::optional(saturating_multiply(*all, n_.value_or(endless))) : std::nullopt;
  }
  std::string describe() const override {
    return n_ ? str_cat(input_->describe(), " | repeat(", *n_, ")") : input_->describe() + " | repeat";
  }

 private:
  class Pass final : public Stream {
   public:
    Pass(const Repeat& repeat, const PassContext& context) : repeat_(repeat), context_(context) {}

    bool next(Item& item) override {
      while (begin_round()) {
        if (input_->next(item)) return is_empty_ = is_empty_ && item.is_failure(), true;
        end_round();
      }
      return false;
    }
    std::uint64_t skip(std::uint64_t n) override {
      std::uint64_t passed = 0;
      while (passed < n && begin_round()) {
        const std::uint64_t here = input_->skip(n - passed);
        if (here > 0) is_empty_ = false;
        passed += here;
        if (passed < n) end_round();
      }
      return passed;
    }
    void save(ByteWriter& out) const override {
      out.boolean(has_ended_);
      out.boolean(is_empty_);
      out.varint(round_);
      out.boolean(input_ != nullptr);
      if (input_) input_->save(out);
    }
    void restore(ByteReader& in) override {
      has_ended_ = in.boolean();
      is_empty_ = in.boolean();
      round_ = read_position(in);
      if (repeat_.n_ && round_ > *repeat_.n_) throw_error(Status::data_loss("an iterator's state repeats too often"));
      if (!in.boolean()) return;
      input_ = repeat_.input_->open(context_.in_epoch(input_epoch()));
      input_->restore(in);
    }

   private:
    /// The rounds of a later epoch follow the rounds of the epoch before; after an endless epoch there is room for
    /// 2^32. An epoch of more bits, as an endless repeat around this one counts them, begins at a place of its own.
    std::uint64_t input_epoch() const {
      const std::uint64_t epoch = context_.epoch;
      if (repeat_.n_) return epoch * *repeat_.n_ + round_;
      return (epoch >> 32 == 0 ? epoch << 32 : spread_bits(epoch)) + round_;
    }
    bool begin_round() {
      if (has_ended_ || (repeat_.n_ && round_ >= *repeat_.n_)) return false;
      if (!input_) {
        input_ = repeat_.input_->open(context_.in_epoch(input_epoch()));
        is_empty_ = true;
      }
      return true;
    }
    void end_round() {
      has_ended_ = is_empty_;
      input_.reset();
      ++round_;
    }

    const Repeat& repeat_;
    PassContext context_;
    std::uint64_t round_ = 0;
    bool is_empty_ = true;  ///< this round has given nothing but failures
    bool has_ended_ = false;
    std::unique_ptr<Stream> input_;
  };

  SharedRecipe input_;
  std::optional<std::uint64_t> n_;
};

class Zip final : public Recipe {
 public:
  Zip(std::vector<SharedRecipe> inputs, std::function<Item(std::vector<Item>&)> join)
      : inputs_(std::move(inputs)), join_(std::move(join)) {}

  std::unique_ptr<Stream> open(const PassContext& context) const override {
    return std::make_unique<Pass>(*this, context);
  }
  std::optional<std::uint64_t> size() const override {
    std::uint64_t least = endless;
    for (const SharedRecipe& input : inputs_) {
      const std::optional<std::uint64_t> one = input->size();
      if (!one) return std::nullopt;
      least = std::min(least, *one);
    }
    return least;
  }
  std::string describe() const override {
    std::string text = "zip(";
    for (const SharedRecipe& input : inputs_) text += (text.size() > 4 ? ", " : "") + input->describe();
    return text + ")";
  }

 private:
  class Pass final : public Stream {
   public:
    Pass(const Zip& zip, const PassContext& context) : zip_(zip) {
      for (const SharedRecipe& input : zip.inputs_) inputs_.push_back(input->open(context));
    }
    bool next(Item& item) override {
      if (has_ended_) return false;
      std::vector<Item> items(inputs_.size());
      for (std::size_t i = 0; i < items.size(); ++i) {
        if (!inputs_[i]->next(items[i])) return has_ended_ = true, false;
      }
      Item* const failure = first_failure(items);
      item = failure != nullptr ? std::move(*failure) : zip_.join_(items);
      return true;
    }
    std::uint64_t skip(std::uint64_t n) override {
      if (has_ended_) return 0;
      std::uint64_t passed = n;
      for (const auto& input : inputs_) passed = std::min(passed, input->skip(n));
      has_ended_ = passed < n;
      return passed;
    }
    void save(ByteWriter& out) const override {
      out.boolean(has_ended_);
      for (const auto& input : inputs_) input->save(out);
    }
    void restore(ByteReader& in) override {
      has_ended_ = in.boolean();
      for (const auto& input : inputs_) input->restore(in);
    }

   private:
    const Zip& zip_;
    std::vector<std::unique_ptr<Stream>> inputs_;
    bool has_ended_ = false;
  };

  std::vector<SharedRecipe> inputs_;
  std::function<Item(std::vector<Item>&)> join_;
};

class Concatenate final : public Recipe {
 public:
  Concatenate(SharedRecipe first, SharedRecipe second) : inputs_{std::move(first), std::move(second)} {}

  std::unique_ptr<Stream> open(const PassContext& context) const override {
    return std::make_unique<Pass>(*this, context);
  }
  std::optional<std::uint64_t> size() const override {
    const std::optional<std::uint64_t> a = inputs_[0]->size(), b = inputs_[1]->size();
    return a && b ? std::optional(saturating_add(*a, *b)) : std::nullopt;
  }
  std::string describe() const override {
    return str_cat("concatenate(", inputs_[0]->describe(), ", ", inputs_[1]->describe(), ")");
  }

 private:
  class Pass final : public Stream {
   public:
    Pass(const Concatenate& both, const PassContext& context)
        : both_(both), context_(context), input_(both.inputs_[0]->open(context)) {}
    bool next(Item& item) override {
      if (input_->next(item)) return true;
      return go_on() && input_->next(item);
    }
    std::uint64_t skip(std::uint64_t n) override {
      const std::uint64_t passed = input_->skip(n);
      return passed < n && go_on() ? passed + input_->skip(n - passed) : passed;
    }
    void save(ByteWriter& out) const override {
      out.boolean(is_second_);
      input_->save(out);
    }
    void restore(ByteReader& in) override {
      if (in.boolean()) go_on();
      input_->restore(in);
    }

   private:
    bool go_on() {
      if (std::exchange(is_second_, true)) return false;
      input_ = both_.inputs_[1]->open(context_);
      return true;
    }

    const Concatenate& both_;
    PassContext context_;
    bool is_second_ = false;
    std::unique_ptr<Stream> input_;
  };

  std::array<SharedRecipe, 2> inputs_;
};

}  // namespace detail

SharedRecipe map_recipe(SharedRecipe input, std::function<Item(Item)> apply) {
  return std::make_shared<detail::Map>(std::move(input), std::move(apply));
}
SharedRecipe filter_recipe(SharedRecipe input, std::function<bool(const Item&)> keeps) {
  return std::make_shared<detail::Filter>(std::move(input), std::move(keeps));
}
SharedRecipe take_recipe(SharedRecipe input, std::uint64_t n) {
  return std::make_shared<detail::Take>(std::move(input), n);
}
SharedRecipe skip_recipe(SharedRecipe input, std::uint64_t n) {
  return std::make_shared<detail::Skip>(std::move(input), n);
}
SharedRecipe repeat_recipe(SharedRecipe input, std::optional<std::uint64_t> n) {
  return std::make_shared<detail::Repeat>(std::move(input), n);
}
SharedRecipe zip_recipe(std::vector<SharedRecipe> inputs, std::function<Item(std::vector<Item>&)> join) {
  if (inputs.empty()) throw_error(Status::invalid_argument("data: zip needs a dataset"));
  return std::make_shared<detail::Zip>(std::move(inputs), std::move(join));
}
SharedRecipe concatenate_recipe(SharedRecipe first, SharedRecipe second) {
  return std::make_shared<detail::Concatenate>(std::move(first), std::move(second));
}

}  // namespace dflow::data
