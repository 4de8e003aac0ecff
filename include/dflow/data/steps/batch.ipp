#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/data/read_position.hpp>
#include <dflow/data/steps/batch.hpp>
#include <dflow/data/steps/replayed_input.hpp>
#include <dflow/data/steps/stack.hpp>
#include <dflow/data/steps/transforms.hpp>

#include <algorithm>
#include <deque>
#include <functional>
#include <string_view>
#include <utility>

namespace dflow::data {

namespace detail {

class Batch final : public Recipe {
 public:
  Batch(SharedRecipe input, std::uint64_t n, bool drop_remainder, Batching batching)
      : input_(std::move(input)), n_(n), drop_remainder_(drop_remainder), batching_(batching) {}

  std::unique_ptr<Stream> open(const PassContext& context) const override {
    return std::make_unique<Pass>(*this, context);
  }
  std::optional<std::uint64_t> size() const override {
    const std::optional<std::uint64_t> all = input_->size();
    return all && *all != endless ? std::optional(batches_of(*all)) : all;
  }
  std::string describe() const override {
    return str_cat(input_->describe(), " | ", name(), "(", n_, drop_remainder_ ? ", whole" : "",
                   batching_.described_padding(), ")");
  }

 private:
  std::string_view name() const noexcept { return batching_.padding ? "padded_batch" : "batch"; }
  std::uint64_t batches_of(std::uint64_t elements) const {
    return elements / n_ + (!drop_remainder_ && elements % n_ != 0 ? 1 : 0);
  }

  /// Between two calls it holds nothing.
  class Pass final : public Stream {
   public:
    Pass(const Batch& batch, const PassContext& context)
        : batch_(batch), context_(context), input_(batch.input_->open(context)) {}

    bool next(Item& item) override {
      std::vector<Item> items;
      Item one;
      while (items.size() < batch_.n_ && input_->next(one)) items.push_back(std::move(one));
      if (items.empty() || (batch_.drop_remainder_ && items.size() < batch_.n_)) return false;
      const std::uint64_t first = saturating_multiply(position_++, batch_.n_);
      context_.make(item, batch_.name(), first, [&] { item = batch_.batching_(items); });
      return true;
    }
    std::uint64_t skip(std::uint64_t n) override {
      const std::uint64_t passed = batch_.batches_of(input_->skip(saturating_multiply(n, batch_.n_)));
      position_ += passed;
      return passed;
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
    const Batch& batch_;
    PassContext context_;
    std::unique_ptr<Stream> input_;
    std::uint64_t position_ = 0;  ///< in batches
  };

  SharedRecipe input_;
  std::uint64_t n_;
  bool drop_remainder_;
  Batching batching_;
};

class Bucket final : public Recipe {
 public:
  Bucket(SharedRecipe input, std::function<std::int64_t(const Item&)> length, BucketOptions options, Batching batching)
      : input_(std::move(input)), length_(std::move(length)), options_(std::move(options)), batching_(batching) {}

  std::unique_ptr<Stream> open(const PassContext& context) const override {
    return std::make_unique<Pass>(*this, context);
  }
  std::string describe() const override {
    std::string text = input_->describe() + " | bucket_by_length(";
    for (std::size_t i = 0; i < options_.sizes.size(); ++i) {
      if (i > 0) text += str_cat(" < ", options_.boundaries[i - 1], ", ");
      text += str_cat(options_.sizes[i]);
    }
    return str_cat(text, options_.drop_remainder ? ", whole" : "", batching_.described_padding(), ")");
  }

 private:
  struct Held {
    std::vector<Item> items;
    std::vector<std::uint64_t> indices;
  };

  class Pass final : public Stream {
   public:
    Pass(const Bucket& bucket, const PassContext& context)
        : bucket_(bucket),
          context_(context),
          input_(bucket.input_->open(context), 256),
          buckets_(bucket.options_.sizes.size()) {}

    bool next(Item& item) override {
      Item one;
      while (!has_ended_) {
        if (input_.is_due()) input_.forget_before(oldest());
        const std::uint64_t index = input_.position();
        has_ended_ = !input_.next(one);
        if (has_ended_) break;
        std::size_t place = 0;
        if (!one.is_failure()) context_.make(one, name, index, [&] { place = bucket_.place_of(one); });
        if (one.is_failure()) return item = std::move(one), true;
        Held& held = buckets_[place];
        held.items.push_back(std::move(one));
        held.indices.push_back(index);
        if (held.items.size() == bucket_.options_.sizes[place]) return give(held, item);
      }
      if (bucket_.options_.drop_remainder) return false;
      for (Held& held : buckets_) {
        if (!held.items.empty()) return give(held, item);
      }
      return false;
    }

    void save(ByteWriter& out) const override {
      out.boolean(has_ended_);
      for (const Held& held : buckets_) {
        out.count(held.indices.size());
        for (const std::uint64_t index : held.indices) out.varint(index);
      }
      input_.save(out, oldest());
    }

    void restore(ByteReader& in) override {
      has_ended_ = in.boolean();
      std::vector<std::pair<std::uint64_t, Item*>> places;
      for (std::size_t i = 0; i < buckets_.size(); ++i) {
        const std::size_t count = in.count(1);
        if (count >= bucket_.options_.sizes[i])
          throw_error(Status::data_loss("an iterator's state holds a bucket that is full"));
        buckets_[i].items.resize(count);
        for (std::size_t k = 0; k < count; ++k) {
          places.emplace_back(buckets_[i].indices.emplace_back(in.varint()), &buckets_[i].items[k]);
        }
        if (!std::is_sorted(buckets_[i].indices.begin(), buckets_[i].indices.end())) {
          throw_error(Status::data_loss("an iterator's state has a bucket whose elements are out of order"));
        }
      }
      std::sort(places.begin(), places.end());
      input_.restore(
          in, endless, places.size(), [&](std::size_t i) { return places[i].first; },
          [&](std::size_t i, Item item) { *places[i].second = std::move(item); });
    }

   private:
    static constexpr std::string_view name = "bucket_by_length";

    bool give(Held& held, Item& item) {
      std::vector<Item> items = std::exchange(held.items, {});
      const std::uint64_t first = held.indices.front();
      held.indices.clear();
      context_.make(item, name, first, [&] { item = bucket_.batching_(items); });
      return true;
    }
    std::uint64_t oldest() const {
      std::uint64_t least = input_.position();
      for (const Held& held : buckets_) {
        if (!held.indices.empty()) least = std::min(least, held.indices.front());
      }
      return least;
    }

    const Bucket& bucket_;
    PassContext context_;
    ReplayedInput input_;
    std::vector<Held> buckets_;
    bool has_ended_ = false;
  };

  std::size_t place_of(const Item& item) const {
    const std::vector<std::int64_t>& ends = options_.boundaries;
    return static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), length_(item)) - ends.begin());
  }

  SharedRecipe input_;
  std::function<std::int64_t(const Item&)> length_;
  BucketOptions options_;
  Batching batching_;
};

class Window final : public Recipe {
 public:
  Window(SharedRecipe input, std::uint64_t n, std::uint64_t shift, bool drop_remainder,
         std::function<Item(std::vector<Item>)> join)
      : input_(std::move(input)), n_(n), shift_(shift), drop_remainder_(drop_remainder), join_(std::move(join)) {}

  std::unique_ptr<Stream> open(const PassContext& context) const override {
    return std::make_unique<Pass>(*this, context);
  }
  std::optional<std::uint64_t> size() const override {
    const std::optional<std::uint64_t> all = input_->size();
    if (!all || *all == endless) return all;
    if (!drop_remainder_) return *all / shift_ + (*all % shift_ != 0 ? 1 : 0);
    return *all < n_ ? 0 : (*all - n_) / shift_ + 1;
  }
  std::string describe() const override {
    return str_cat(input_->describe(), " | window(", n_, ", shift ", shift_, drop_remainder_ ? ", whole)" : ")");
  }

 private:
  class Pass final : public Stream {
   public:
    Pass(const Window& window, const PassContext& context)
        : window_(window), input_(window.input_->open(context), std::max<std::uint64_t>(window.n_, 64)) {}

    bool next(Item& item) override {
      // Drops the elements between two windows, and the elements that have left the last window.
      for (; to_drop_ > 0 && !held_.empty(); --to_drop_) held_.pop_front();
      for (; to_drop_ > 0 && read(); --to_drop_) held_.clear();
      while (held_.size() < window_.n_) {
        if (!read()) break;
      }
      if (held_.empty() || (window_.drop_remainder_ && held_.size() < window_.n_)) return false;
      std::vector<Item> items;
      items.reserve(held_.size());
      for (std::size_t i = 0; i < held_.size(); ++i) {
        const bool is_last_use = i < window_.shift_;
        items.push_back(is_last_use ? std::move(held_[i]) : held_[i].copy());
      }
      Item* const failure = first_failure(items);
      item = failure != nullptr ? std::move(*failure) : window_.join_(std::move(items));
      to_drop_ = window_.shift_;
      return true;
    }

    void save(ByteWriter& out) const override {
      out.boolean(has_ended_);
      out.varint(to_drop_);
      out.varint(input_.position());
      out.count(held_.size());
      input_.save(out, input_.position() - held_.size());
    }

    void restore(ByteReader& in) override {
      has_ended_ = in.boolean();
      to_drop_ = read_replayed(in, window_.shift_);
      const std::uint64_t position = in.varint();
      const std::uint64_t count = in.varint();
      if (count > window_.n_ || count > position) {
        throw_error(Status::data_loss("an iterator's state holds more than a window"));
      }
      input_.restore(
          in, saturating_add(saturating_multiply(window_.n_, 2), 128), count,
          [&](std::size_t i) { return position - count + i; },
          [&](std::size_t, Item item) { held_.push_back(std::move(item)); });
      if (input_.position() != position)
        throw_error(Status::data_loss("an iterator's state has a window at two positions"));
    }

   private:
    bool read() {
      if (has_ended_) return false;
      if (input_.is_due()) input_.forget_before(input_.position() - held_.size());
      Item item;
      has_ended_ = !input_.next(item);
      if (!has_ended_) held_.push_back(std::move(item));
      return !has_ended_;
    }

    const Window& window_;
    ReplayedInput input_;
    std::deque<Item> held_;
    std::uint64_t to_drop_ = 0;
    bool has_ended_ = false;
  };

  SharedRecipe input_;
  std::uint64_t n_;
  std::uint64_t shift_;
  bool drop_remainder_;
  std::function<Item(std::vector<Item>)> join_;
};

}  // namespace detail

Item Batching::operator()(std::vector<Item>& items) const {
  if (Item* const failure = first_failure(items)) return std::move(*failure);
  const std::size_t parts = element->num_tensors, n = items.size();
  std::vector<AnyTensor> rows(parts * n), split(parts), batched(parts);  // rows: the rows of a part side by side
  for (std::size_t i = 0; i < n; ++i) {
    items[i].split(split.data());
    for (std::size_t p = 0; p < parts; ++p) rows[p * n + i] = std::move(split[p]);
  }
  for (std::size_t p = 0; p < parts; ++p) {
    const std::span<const AnyTensor> of_part(rows.data() + p * n, n);
    batched[p] = padding ? stack_padded(of_part, *padding) : stack_rows(of_part);
  }
  return {*batch, batch->join(batched.data())};
}

std::string Batching::described_padding() const { return padding ? str_cat(", filled up with ", *padding) : ""; }

SharedRecipe batch_recipe(SharedRecipe input, std::uint64_t n, bool drop_remainder, Batching batching) {
  require_count("the size of a batch", n);
  return std::make_shared<detail::Batch>(std::move(input), n, drop_remainder, batching);
}

SharedRecipe bucket_recipe(SharedRecipe input, std::function<std::int64_t(const Item&)> length, BucketOptions options,
                           Batching batching) {
  const auto reject = [](std::string_view message) {
    throw_error(Status::invalid_argument(str_cat("data: bucket_by_length: ", message)));
  };
  if (options.sizes.size() != options.boundaries.size() + 1) {
    reject(str_cat(options.boundaries.size(), " boundaries need ", options.boundaries.size() + 1, " sizes, got ",
                   options.sizes.size()));
  }
  const auto& ends = options.boundaries;
  if (std::adjacent_find(ends.begin(), ends.end(), std::greater_equal<>()) != ends.end()) {
    reject("the boundaries must ascend");
  }
  for (const std::uint64_t size : options.sizes) require_count("bucket_by_length: the size of a batch", size);
  return std::make_shared<detail::Bucket>(std::move(input), std::move(length), std::move(options), batching);
}

SharedRecipe window_recipe(SharedRecipe input, std::uint64_t n, WindowOptions options,
                           std::function<Item(std::vector<Item>)> join) {
  require_count("the size of a window", n);
  const std::uint64_t shift = options.shift.value_or(n);
  require_count("the shift of a window", shift);
  return std::make_shared<detail::Window>(std::move(input), n, shift, options.drop_remainder, std::move(join));
}

}  // namespace dflow::data
