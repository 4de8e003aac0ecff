#pragma once

#include <dflow/base/printable.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/core/tensor.hpp>
#include <dflow/state/flat_state.hpp>
#include <dflow/state/tables/lookup_table_state.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <variant>

namespace dflow {

/// Keys in their order of arrival, each with a row of values.
///
/// Thread safety: guarded by the mutex of its owner.
class LookupTableState::Rows {
 public:
  explicit Rows(const Kind& kind) : dtype_(kind.value), width_(kind.value_shape.num_elements()) {
    if (kind.key == DType::int32) {
      index_.emplace<Index<std::int32_t>>();
    } else if (kind.key == DType::int64) {
      index_.emplace<Index<std::int64_t>>();
    } else {
      index_.emplace<Index<std::string>>();
    }
  }

  std::int64_t size() const {
    return std::visit([](const auto& index) { return static_cast<std::int64_t>(index.keys.size()); }, index_);
  }
  void find(const AnyTensor& keys, const AnyTensor& default_value, AnyTensor& to) const {
    std::visit(
        [&](const auto& index) {
          std::int64_t at = 0;
          for (const auto& key : index.of(keys)) {
            const auto found = index.rows.find(key);
            const bool is_there = found != index.rows.end();
            detail::copy_elements(is_there ? values_ : default_value, is_there ? found->second * width_ : 0, width_, to,
                                  at);
            at += width_;
          }
        },
        index_);
  }
  /// The first row whose key has another value already, if `replaces` is false; the rows from there are left out.
  std::optional<std::int64_t> insert(const AnyTensor& keys, const AnyTensor& values, bool replaces) {
    reserve(size() + keys.num_elements());
    return std::visit(
        [&](auto& index) {
          std::int64_t from = 0, row = 0;
          for (const auto& key : index.of(keys)) {
            const auto found = index.rows.find(key);
            if (found == index.rows.end()) {
              add(index, key, values, from);
            } else if (replaces) {
              detail::copy_elements(values, from, width_, values_, found->second * width_);
            } else if (!are_equal(values_, found->second * width_, values, from)) {
              return std::optional(row);
            }
            from += width_;
            ++row;
          }
          return std::optional<std::int64_t>();
        },
        index_);
  }
  void remove(const AnyTensor& keys) {
    std::visit(
        [&](auto& index) {
          for (const auto& key : index.of(keys)) {
            const auto found = index.rows.find(key);
            if (found != index.rows.end()) remove(index, found);
          }
        },
        index_);
  }
  /// The same keys with the same values, in any order.
  bool is_equal_to(const Rows& other) const {
    if (size() != other.size()) return false;
    return std::visit(
        [&](const auto& index) {
          const auto& others = std::get<std::remove_cvref_t<decltype(index)>>(other.index_);
          return std::all_of(index.rows.begin(), index.rows.end(), [&](const auto& entry) {
            const auto found = others.rows.find(entry.first);
            return found != others.rows.end() &&
                   are_equal(values_, entry.second * width_, other.values_, found->second * width_);
          });
        },
        index_);
  }
  void copy_to(AnyTensor& keys, AnyTensor& values) const {
    std::visit(
        [&](const auto& index) {
          using Key = typename std::remove_cvref_t<decltype(index)>::Key;
          std::copy(index.keys.begin(), index.keys.end(), Tensor<Key>::of(keys).data());
        },
        index_);
    detail::copy_elements(values_, 0, size() * width_, values, 0);
  }

 private:
  template <class K>
  struct Index {
    using Key = K;
    std::unordered_map<K, std::int64_t> rows;
    std::vector<K> keys;

    static std::span<const K> of(const AnyTensor& keys) { return keys.span<K>(); }
  };

  void reserve(std::int64_t rows) {
    if (rows <= room_) return;
    const std::int64_t room = std::max(rows, 2 * room_);
    AnyTensor larger(dtype_, Shape{room, width_});
    detail::copy_elements(values_, 0, size() * width_, larger, 0);
    std::visit([&](auto& index) { index.keys.reserve(static_cast<std::size_t>(room)); }, index_);
    values_ = std::move(larger);
    room_ = room;
  }
  /// Precondition: there is room.
  template <class K>
  void add(Index<K>& index, const K& key, const AnyTensor& values, std::int64_t from) {
    const auto row = static_cast<std::int64_t>(index.keys.size());
    detail::copy_elements(values, from, width_, values_, row * width_);
    index.keys.push_back(key);
    try {
      index.rows.emplace(key, row);
    } catch (...) {
      index.keys.pop_back();
      throw;
    }
  }
  /// The last row takes its place.
  template <class K>
  void remove(Index<K>& index, typename std::unordered_map<K, std::int64_t>::iterator found) {
    const std::int64_t row = found->second, last = static_cast<std::int64_t>(index.keys.size()) - 1;
    if (row != last) {
      detail::copy_elements(values_, last * width_, width_, values_, row * width_);
      index.rows.find(index.keys.back())->second = row;
      index.keys[static_cast<std::size_t>(row)] = std::move(index.keys.back());
    }
    if (dtype_ == DType::string) {
      std::string* const texts = Tensor<std::string>::of(values_).data() + last * width_;
      for (std::int64_t i = 0; i < width_; ++i) texts[i] = std::string();
    }
    index.rows.erase(found);
    index.keys.pop_back();
  }
  bool are_equal(const AnyTensor& a, std::int64_t at_a, const AnyTensor& b, std::int64_t at_b) const {
    if (width_ == 0) return true;
    if (dtype_ == DType::string) {
      const std::string* const texts = Tensor<std::string>::of(a).data() + at_a;
      return std::equal(texts, texts + width_, Tensor<std::string>::of(b).data() + at_b);
    }
    const std::size_t each = size_of(dtype_);
    return std::memcmp(static_cast<const char*>(a.raw_data()) + static_cast<std::size_t>(at_a) * each,
                       static_cast<const char*>(b.raw_data()) + static_cast<std::size_t>(at_b) * each,
                       static_cast<std::size_t>(width_) * each) == 0;
  }

  const DType dtype_;
  const std::int64_t width_;  ///< elements of one value
  std::int64_t room_ = 0;     ///< rows that `values_` has
  AnyTensor values_;
  std::variant<Index<std::int32_t>, Index<std::int64_t>, Index<std::string>> index_;
};

struct LookupTableState::State {
  explicit State(const Kind& kind) : rows(std::make_unique<Rows>(kind)), is_filled(kind.is_mutable) {}

  mutable std::shared_mutex mutex;
  std::unique_ptr<Rows> rows;
  bool is_filled;

  void require_filled(const LookupTableState& of) const {
    if (!is_filled) throw_error(Status::failed_precondition(str_cat(of.debug_string(), " has not been initialized")));
  }
};

LookupTableState::LookupTableState(std::string name, const Kind& kind)
    : name_(std::move(name)), kind_(kind), state_(std::make_unique<State>(kind)) {}
LookupTableState::~LookupTableState() = default;

std::string LookupTableState::debug_string() const {
  return str_cat(kind_.is_mutable ? "MutableHashTable '" : "HashTable '", name_, "' (", dtype_name(kind_.key), " to ",
                 dtype_name(kind_.value), kind_.value_shape.to_string(), ")");
}

void LookupTableState::check_keys(const AnyTensor& keys) const {
  if (keys.dtype() == kind_.key) return;
  throw_error(Status::invalid_argument(str_cat("keys are ", dtype_name(keys.dtype()), " for ", debug_string())));
}
void LookupTableState::check_values(const AnyTensor& keys, const AnyTensor& values) const {
  check_keys(keys);
  const Shape wanted = keys.shape().concatenated(kind_.value_shape);
  if (values.dtype() == kind_.value && values.shape() == wanted) return;
  throw_error(
      Status::invalid_argument(str_cat("values are ", dtype_name(values.dtype()), values.shape().to_string(), " for ",
                                       debug_string(), ", wanted ", dtype_name(kind_.value), wanted.to_string())));
}

AnyTensor LookupTableState::find(const AnyTensor& keys, const AnyTensor& default_value, Allocator& allocator) const {
  check_keys(keys);
  if (default_value.dtype() != kind_.value || default_value.shape() != kind_.value_shape) {
    throw_error(Status::invalid_argument(str_cat("the default value is ", dtype_name(default_value.dtype()),
                                                 default_value.shape().to_string(), " for ", debug_string())));
  }
  AnyTensor found(kind_.value, keys.shape().concatenated(kind_.value_shape), allocator);
  const std::shared_lock lock(state_->mutex);
  state_->require_filled(*this);
  state_->rows->find(keys, default_value, found);
  return found;
}

void LookupTableState::insert(const AnyTensor& keys, const AnyTensor& values) {
  check_values(keys, values);
  if (!kind_.is_mutable) throw_error(Status::unimplemented(str_cat(debug_string(), " is filled once")));
  const std::lock_guard lock(state_->mutex);
  state_->rows->insert(keys, values, true);
}

void LookupTableState::remove(const AnyTensor& keys) {
  check_keys(keys);
  if (!kind_.is_mutable) throw_error(Status::unimplemented(str_cat(debug_string(), " is filled once")));
  const std::lock_guard lock(state_->mutex);
  state_->rows->remove(keys);
}

void LookupTableState::import(const AnyTensor& keys, const AnyTensor& values) {
  check_values(keys, values);
  auto rows = std::make_unique<Rows>(kind_);
  if (const auto row = rows->insert(keys, values, kind_.is_mutable)) {
    const std::string key = visit_dtype<TypeList<std::int32_t, std::int64_t, std::string>>(
        keys.dtype(), [&]<class K>() -> std::string { return str_cat(Tensor<K>::of(keys).data()[*row]); });
    throw_error(
        Status::failed_precondition(str_cat("entry ", *row + 1, " of ", keys.num_elements(), " gives key '",
                                            printable(key, 80), "' a second, different value for ", debug_string())));
  }
  const std::lock_guard lock(state_->mutex);
  if (!kind_.is_mutable && state_->is_filled) {
    if (rows->is_equal_to(*state_->rows)) return;
    throw_error(Status::failed_precondition(str_cat(debug_string(), " has been initialized with other values")));
  }
  state_->rows.swap(rows);
  state_->is_filled = true;
}

std::pair<AnyTensor, AnyTensor> LookupTableState::export_all(Allocator& allocator) const {
  const std::shared_lock lock(state_->mutex);
  state_->require_filled(*this);
  const Shape rows{state_->rows->size()};
  std::pair<AnyTensor, AnyTensor> all{AnyTensor(kind_.key, rows, allocator),
                                      AnyTensor(kind_.value, rows.concatenated(kind_.value_shape), allocator)};
  state_->rows->copy_to(all.first, all.second);
  return all;
}

std::vector<AnyTensor> LookupTableState::saved_state() const {
  const std::shared_lock lock(state_->mutex);
  const std::int64_t size = state_->rows->size();
  AnyTensor keys(kind_.key, Shape{size}), values(kind_.value, Shape{size}.concatenated(kind_.value_shape));
  state_->rows->copy_to(keys, values);
  return {detail::numbers_tensor({state_->is_filled ? 1 : 0, size}), keys,
          values.reshaped(Shape{values.num_elements()})};
}

void LookupTableState::restore_state(std::span<const AnyTensor> state) {
  detail::FlatState saved(debug_string(), state, std::vector<DType>{kind_.key, kind_.value});
  const bool is_filled = saved.number(kind_.is_mutable ? 1 : 0, 1) != 0;
  const std::int64_t size = saved.number(0, is_filled ? std::numeric_limits<std::int64_t>::max() : 0);
  const AnyTensor keys = saved.tensor(0, Shape{size});
  const AnyTensor values = saved.tensor(1, Shape{size}.concatenated(kind_.value_shape));
  saved.end();
  auto rows = std::make_unique<Rows>(kind_);
  rows->insert(keys, values, true);
  if (rows->size() != size) saved.fail("a key stands there twice");
  const std::lock_guard lock(state_->mutex);
  state_->rows.swap(rows);
  state_->is_filled = is_filled;
}

std::int64_t LookupTableState::size() const {
  const std::shared_lock lock(state_->mutex);
  return state_->rows->size();
}

}  // namespace dflow
