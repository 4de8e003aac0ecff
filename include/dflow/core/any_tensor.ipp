#pragma once

#include <dflow/base/checked.hpp>
#include <dflow/core/any_tensor.hpp>

#include <algorithm>
#include <cstring>
#include <ostream>

namespace dflow {

void detail::throw_element_type_mismatch(DType held, DType wanted) {
  if (held == DType::invalid) {
    throw_error(
        Status::invalid_argument(str_cat("the tensor is uninitialised, ", dtype_name(wanted), " was asked for")));
  }
  throw_error(Status::invalid_argument(
      str_cat("the tensor's element type is ", dtype_name(held), ", ", dtype_name(wanted), " was asked for")));
}

// The constructor's way for elements that are not plain bytes, or are too many bytes.
void AnyTensor::allocate_unusual(Allocator& allocator) {
  if (!is_element(dtype_)) {
    throw_error(Status::invalid_argument(str_cat("a tensor cannot be made of element type ", dtype_name(dtype_))));
  }
  if (dtype_ != DType::string) {
    throw_error(Status::invalid_argument(
        str_cat("a tensor of ", dtype_name(dtype_), shape_.to_string(), " has more bytes than can be addressed")));
  }
  if (shape_.num_elements() == 0) return;
  buffer_ = BufferRef::allocate_strings(static_cast<std::size_t>(shape_.num_elements()), allocator);
  data_ = buffer_->data();
}

namespace detail {

std::size_t bytes_of(DType dtype, const Shape& shape) {
  return checked_mul(static_cast<std::size_t>(shape.num_elements()), size_of(dtype));
}

[[noreturn]] void throw_too_few_bytes(DType dtype, const Shape& shape, std::size_t bytes) {
  throw_error(Status::invalid_argument(
      str_cat(bytes, " bytes are too few for a tensor of ", dtype_name(dtype), shape.to_string())));
}

}  // namespace detail

AnyTensor AnyTensor::zeros(DType dtype, const Shape& shape, Allocator& allocator) {
  AnyTensor tensor(dtype, shape, allocator);
  if (is_plain(dtype) && tensor.data_ != nullptr) std::memset(tensor.data_, 0, tensor.bytes());
  return tensor;
}

AnyTensor AnyTensor::adopt(DType dtype, const Shape& shape, void* data, std::size_t bytes,
                           UniqueFunction<void()> release, Lending lending) {
  if (size_of(dtype) == 0) {
    throw_error(Status::invalid_argument(str_cat("a tensor cannot be made of element type ", dtype_name(dtype))));
  }
  const std::size_t needed = detail::bytes_of(dtype, shape);
  if (bytes < needed || (data == nullptr && needed != 0))
    detail::throw_too_few_bytes(dtype, shape, data == nullptr ? 0 : bytes);
  AnyTensor tensor;
  tensor.buffer_ = BufferRef::external(data, bytes, std::move(release), lending);
  tensor.data_ = data;
  tensor.shape_ = shape;
  tensor.dtype_ = dtype;
  return tensor;
}

AnyTensor AnyTensor::over(BufferRef buffer, std::size_t offset_bytes, DType dtype, const Shape& shape) {
  if (!is_plain(dtype)) {
    throw_error(Status::invalid_argument(str_cat("a tensor of ", dtype_name(dtype), " cannot be laid over bytes")));
  }
  const std::size_t needed = detail::bytes_of(dtype, shape);
  const std::size_t capacity = buffer ? buffer->capacity_bytes() : 0;
  if (offset_bytes > capacity || needed > capacity - offset_bytes) {
    detail::throw_too_few_bytes(dtype, shape, offset_bytes > capacity ? 0 : capacity - offset_bytes);
  }
  AnyTensor tensor;
  tensor.shape_ = shape;
  tensor.dtype_ = dtype;
  if (needed == 0) return tensor;
  tensor.data_ = static_cast<std::byte*>(buffer->data()) + offset_bytes;
  tensor.buffer_ = std::move(buffer);
  return tensor;
}

AnyTensor AnyTensor::slice(std::int64_t begin, std::int64_t end) const {
  if (rank() == 0 || begin < 0 || begin > end || end > dim(0)) {
    throw_error(Status::invalid_argument(
        str_cat("rows [", begin, ", ", end, ") are not within a tensor of shape ", shape_.to_string())));
  }
  AnyTensor part = *this;
  part.shape_ = shape_.with_dim(0, end - begin);
  if (data_ != nullptr) {
    part.data_ = static_cast<std::byte*>(data_) +
                 static_cast<std::size_t>(begin * shape_.num_elements(1, rank())) * size_of(dtype_);
  }
  return part;
}

AnyTensor AnyTensor::reshaped(const Shape& shape) const {
  if (shape.num_elements() != num_elements()) {
    throw_error(Status::invalid_argument(str_cat("a tensor of shape ", shape_.to_string(), " has ", num_elements(),
                                                 " elements and cannot be reshaped to ", shape.to_string())));
  }
  AnyTensor tensor = *this;
  tensor.shape_ = shape;
  return tensor;
}

AnyTensor AnyTensor::deep_copy(Allocator& allocator) const {
  if (!is_initialized() || !is_element(dtype_)) return *this;
  AnyTensor copy(dtype_, shape_, allocator);
  if (copy.data_ == nullptr) return copy;
  if (dtype_ == DType::string) {
    const auto* from = static_cast<const std::string*>(data_);
    std::copy_n(from, num_elements(), static_cast<std::string*>(copy.data_));
  } else {
    std::memcpy(copy.data_, data_, bytes());
  }
  return copy;
}

std::ostream& operator<<(std::ostream& out, const AnyTensor& tensor) { return out << tensor.to_string(); }

bool bitwise_equal(const AnyTensor& a, const AnyTensor& b) noexcept {
  if (a.dtype() != b.dtype()) return false;
  if (!a.is_initialized()) return true;
  if (!(a.shape() == b.shape())) return false;
  if (a.raw_data() == b.raw_data() || a.num_elements() == 0) return true;
  if (a.dtype() == DType::string) {
    const auto* first = static_cast<const std::string*>(a.raw_data());
    return std::equal(first, first + a.num_elements(), static_cast<const std::string*>(b.raw_data()));
  }
  return std::memcmp(a.raw_data(), b.raw_data(), a.bytes()) == 0;
}

namespace detail {

/// Prints a tensor's elements with one pair of brackets per dimension, until `left` are printed.
class ElementPrinter {
 public:
  ElementPrinter(const AnyTensor& tensor, std::int64_t most) : tensor_(tensor), left_(most) {}

  void print(int axis, std::string& text) {
    if (axis == tensor_.rank()) {
      if (left_-- > 0) print_element(text);
      ++next_;
      return;
    }
    text += '[';
    for (std::int64_t i = 0; i < tensor_.dim(axis); ++i) {
      if (i != 0) text += ", ";
      if (left_ <= 0) {
        text += "...";
        break;
      }
      print(axis + 1, text);
    }
    text += ']';
  }

 private:
  void print_element(std::string& text) const {
    visit_dtype<AllTypes>(tensor_.dtype(), [&]<class T>() {
      const T& value = static_cast<const T*>(tensor_.raw_data())[next_];
      if constexpr (std::is_same_v<T, std::string>) {
        print_string(value, text);
      } else if constexpr (is_complex_element<T>) {
        text += str_cat("(", value.real(), ",", value.imag(), ")");
      } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
        text += str_cat(static_cast<float>(value));
      } else {
        text += str_cat(value);
      }
    });
  }
  static void print_string(const std::string& value, std::string& text) {
    constexpr std::size_t most = 80;
    constexpr char digits[] = "0123456789abcdef";
    text += '"';
    for (const char c : value.substr(0, most)) {
      const auto byte = static_cast<unsigned char>(c);
      if (c == '"' || c == '\\') {
        text += {'\\', c};
      } else if (byte < 0x20 || byte == 0x7f) {
        text += {'\\', 'x', digits[byte / 16], digits[byte % 16]};
      } else {
        text += c;
      }
    }
    text += value.size() > most ? "...\"" : "\"";
  }

  const AnyTensor& tensor_;
  std::int64_t left_;
  std::int64_t next_ = 0;
};

}  // namespace detail

std::string AnyTensor::to_string(std::int64_t max_elements) const {
  if (!is_initialized()) return "uninitialised";
  std::string text = str_cat(dtype_name(dtype_), shape_.to_string());
  if (!is_element(dtype_)) return text;
  text += ' ';
  if (num_elements() == 0) return text += "[]";
  detail::ElementPrinter(*this, max_elements).print(0, text);
  return text;
}

}  // namespace dflow
