#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/data/read_position.hpp>
#include <dflow/data/steps/ignore_errors.hpp>

#include <utility>

namespace dflow::data {

namespace detail {

class IgnoreErrors final : public Recipe {
 public:
  IgnoreErrors(SharedRecipe input, IgnoreErrorsOptions options)
      : input_(std::move(input)), options_(std::move(options)) {}

  std::unique_ptr<Stream> open(const PassContext& context) const override {
    return std::make_unique<Pass>(*this, input_->open({context.epoch, context.limit, true}));
  }
  std::string describe() const override { return input_->describe() + " | ignore_errors"; }

 private:
  class Pass final : public Stream {
   public:
    Pass(const IgnoreErrors& step, std::unique_ptr<Stream> input) : step_(step), input_(std::move(input)) {}

    bool next(Item& item) override {
      while (input_->next(item)) {
        if (!item.is_failure()) return true;
        ignore(item);
      }
      return false;
    }
    void save(ByteWriter& out) const override {
      out.varint(ignored_);
      input_->save(out);
    }
    void restore(ByteReader& in) override {
      ignored_ = read_position(in);
      input_->restore(in);
    }

   private:
    void ignore(const Item& failure) {
      const Status error = failure.failure_status();
      const IgnoreErrorsOptions& options = step_.options_;
      if (ignored_ >= options.limit) {
        throw_error(
            error.with_prefix(str_cat("data: ", options.limit, " errors have been ignored, and one more came: ")));
      }
      ++ignored_;
      if (options.on_error) options.on_error(error, ignored_);
    }

    const IgnoreErrors& step_;
    std::unique_ptr<Stream> input_;
    std::uint64_t ignored_ = 0;
  };

  SharedRecipe input_;
  IgnoreErrorsOptions options_;
};

}  // namespace detail

SharedRecipe ignore_errors_recipe(SharedRecipe input, IgnoreErrorsOptions options) {
  return std::make_shared<detail::IgnoreErrors>(std::move(input), std::move(options));
}

}  // namespace dflow::data
