#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/data/sources.hpp>

#include <algorithm>
#include <utility>

namespace dflow::data {

namespace detail {

class IndexedSource final : public Recipe {
 public:
  IndexedSource(std::string name, std::uint64_t size, std::function<Item(std::uint64_t)> at)
      : name_(std::move(name)), size_(size), at_(std::move(at)) {}

  std::unique_ptr<Stream> open(const PassContext& context) const override {
    return std::make_unique<Pass>(*this, context);
  }
  std::optional<std::uint64_t> size() const override { return size_; }
  std::string describe() const override { return size_ == endless ? name_ : str_cat(name_, "(", size_, ")"); }

 private:
  class Pass final : public Stream {
   public:
    Pass(const IndexedSource& source, const PassContext& context) : source_(source), context_(context) {}

    bool next(Item& item) override {
      context_.limit.count();
      if (position_ == source_.size_) return false;
      context_.make(item, source_.name_, position_, [&] { item = source_.at_(position_); });
      ++position_;
      return true;
    }
    std::uint64_t skip(std::uint64_t n) override {
      context_.limit.count();
      const std::uint64_t passed = std::min(n, source_.size_ - position_);
      position_ += passed;
      return passed;
    }
    void save(ByteWriter& out) const override { out.varint(position_); }
    void restore(ByteReader& in) override {
      const std::uint64_t position = in.varint();
      require_passed_over(std::min(position, source_.size_), position);
      position_ = position;
    }

   private:
    const IndexedSource& source_;
    PassContext context_;
    std::uint64_t position_ = 0;
  };

  std::string name_;
  std::uint64_t size_;
  std::function<Item(std::uint64_t)> at_;
};

class GeneratedSource final : public Recipe {
 public:
  GeneratedSource(std::string name, std::function<std::function<Item()>()> begin)
      : name_(std::move(name)), begin_(std::move(begin)) {}

  std::unique_ptr<Stream> open(const PassContext& context) const override {
    return std::make_unique<Pass>(*this, context);
  }
  std::string describe() const override { return name_; }

 private:
  class Pass final : public Stream {
   public:
    Pass(const GeneratedSource& source, const PassContext& context) : source_(source), context_(context) {}

    bool next(Item& item) override {
      context_.limit.count();
      if (has_ended_) return false;
      const bool is_made = context_.make(item, source_.name_, position_, [&] {
        if (!generate_) generate_ = source_.begin_();
        item = generate_();
      });
      has_ended_ = !is_made || item.is_empty();  // a generator that has thrown gives nothing more
      if (item.is_empty()) return false;
      ++position_;
      return true;
    }
    void save(ByteWriter& out) const override { out.varint(position_); }
    void restore(ByteReader& in) override { replay(*this, in.varint()); }

   private:
    const GeneratedSource& source_;
    PassContext context_;
    std::function<Item()> generate_;
    std::uint64_t position_ = 0;
    bool has_ended_ = false;
  };

  std::string name_;
  std::function<std::function<Item()>()> begin_;
};

}  // namespace detail

SharedRecipe indexed_source(std::string name, std::uint64_t size, std::function<Item(std::uint64_t index)> at) {
  return std::make_shared<detail::IndexedSource>(std::move(name), size, std::move(at));
}

SharedRecipe generated_source(std::string name, std::function<std::function<Item()>()> begin) {
  return std::make_shared<detail::GeneratedSource>(std::move(name), std::move(begin));
}

SharedRecipe counting_source() {
  return std::make_shared<detail::IndexedSource>(
      "count", endless, [](std::uint64_t i) { return Item::of(static_cast<std::int64_t>(i)); });
}

SharedRecipe failed_source(Item failure) {
  const auto shared = std::make_shared<const Item>(std::move(failure));
  return indexed_source("failed", 1, [shared](std::uint64_t) { return shared->copy(); });
}

SharedRecipe row_source(std::vector<AnyTensor> tensors, const ElementType& type) {
  for (const AnyTensor& tensor : tensors) {
    if (!tensor.is_initialized() || tensor.rank() == 0) {
      throw_error(Status::invalid_argument("data: a scalar has no rows; from_tensors takes tensors [rows, ...]"));
    }
    if (tensor.dim(0) != tensors.front().dim(0)) {
      throw_error(Status::invalid_argument(
          str_cat("data: tensors of ", tensors.front().dim(0), " and ", tensor.dim(0), " rows do not make pairs")));
    }
  }
  const auto rows = static_cast<std::uint64_t>(tensors.front().dim(0));
  std::vector<Shape> shapes;
  shapes.reserve(tensors.size());
  for (const AnyTensor& tensor : tensors) shapes.push_back(tensor.shape().erased(0));
  const auto at = [tensors = std::move(tensors), shapes = std::move(shapes), &type](std::uint64_t index) {
    std::vector<AnyTensor> row;
    row.reserve(tensors.size());
    const auto i = static_cast<std::int64_t>(index);
    for (std::size_t t = 0; t < tensors.size(); ++t) row.push_back(tensors[t].slice(i, i + 1).reshaped(shapes[t]));
    return Item(type, type.join(row.data()));
  };
  return indexed_source("rows", rows, at);
}

}  // namespace dflow::data
