#pragma once

#include <dflow/base/checked.hpp>
#include <dflow/base/status.hpp>
#include <dflow/core/tensor.hpp>
#include <dflow/io/summary/tensor_proto.hpp>

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dflow {

namespace detail {

/// The fields of a TensorProto, as they come. All integers, halfs' bits and bools are in one of the varint fields.
struct TensorProtoFields {
  std::uint64_t dtype = 0;
  std::vector<std::int64_t> extents;
  std::string_view content;
  std::vector<float> floats;           ///< complex64: pairs
  std::vector<double> doubles;         ///< complex128: pairs
  std::vector<std::uint64_t> varints;  ///< sign-extended
  std::vector<std::string_view> strings;
};

void read_extents(ProtoReader shape, std::vector<std::int64_t>& extents) {
  while (shape.next()) {
    if (shape.number() == 3 && shape.boolean()) shape.fail("a tensor of unknown rank");
    if (shape.number() != 2) continue;
    if (extents.size() == static_cast<std::size_t>(max_rank)) {
      throw_error(Status::unimplemented(str_cat("a tensor of more than ", max_rank, " dimensions")));
    }
    std::int64_t extent = 0;
    for (ProtoReader dim = shape.message(); dim.next();) {
      if (dim.number() == 1) extent = dim.int64();
    }
    if (extent < 0) shape.fail("a tensor of unknown shape");
    extents.push_back(extent);
  }
}

TensorProtoFields read_tensor_fields(ProtoReader in) {
  TensorProtoFields fields;
  while (in.next()) {
    switch (in.number()) {
      case 1:
        fields.dtype = in.uint64();
        break;
      case 2:
        read_extents(in.message(), fields.extents);
        break;
      case 4:
        fields.content = in.bytes();
        break;
      case 5:  // float_val
      case 9:  // scomplex_val
        in.append_to(fields.floats);
        break;
      case 6:   // double_val
      case 12:  // dcomplex_val
        in.append_to(fields.doubles);
        break;
      case 8:
        fields.strings.push_back(in.bytes());
        break;
      case 7:   // int_val
      case 10:  // int64_val
      case 11:  // bool_val
      case 13:  // half_val
      case 16:  // uint32_val
      case 17:  // uint64_val
        in.append_to(fields.varints);
        break;
      default:
        break;
    }
  }
  return fields;
}

/// How many values of type T there are.
template <class T>
std::size_t count_of_values(const TensorProtoFields& fields) {
  if constexpr (std::same_as<T, std::string>) return fields.strings.size();
  if constexpr (std::same_as<T, float>) return fields.floats.size();
  if constexpr (std::same_as<T, double>) return fields.doubles.size();
  if constexpr (std::same_as<T, std::complex<float>>) return fields.floats.size() / 2;
  if constexpr (std::same_as<T, std::complex<double>>) return fields.doubles.size() / 2;
  return fields.varints.size();
}

template <class T>
T value_of(const TensorProtoFields& fields, std::size_t i) {
  if constexpr (std::same_as<T, std::string>) {
    return std::string(fields.strings[i]);
  } else if constexpr (std::same_as<T, float>) {
    return fields.floats[i];
  } else if constexpr (std::same_as<T, double>) {
    return fields.doubles[i];
  } else if constexpr (std::same_as<T, std::complex<float>>) {
    return {fields.floats[2 * i], fields.floats[2 * i + 1]};
  } else if constexpr (std::same_as<T, std::complex<double>>) {
    return {fields.doubles[2 * i], fields.doubles[2 * i + 1]};
  } else if constexpr (std::same_as<T, Half> || std::same_as<T, BFloat16>) {
    return std::bit_cast<T>(static_cast<std::uint16_t>(fields.varints[i]));
  } else if constexpr (std::same_as<T, bool>) {
    return fields.varints[i] != 0;
  } else {
    return static_cast<T>(fields.varints[i]);
  }
}

/// Sizes are compared before anything is allocated.
template <class T>
AnyTensor tensor_of_fields(const TensorProtoFields& fields, const ProtoReader& in, std::int64_t& elements_left) {
  const std::optional<std::int64_t> elements = try_product(fields.extents);
  if (!elements) in.fail("a tensor of too many elements");
  const auto count = static_cast<std::uint64_t>(*elements);
  if (!std::same_as<T, std::string> && !fields.content.empty()) {
    if (fields.content.size() % sizeof(T) != 0 || fields.content.size() / sizeof(T) != count) {
      in.fail(str_cat(fields.content.size(), " bytes are no ", count, " elements"));
    }
    Tensor<T> tensor{Shape(std::span<const std::int64_t>(fields.extents))};
    if constexpr (std::same_as<T, bool>) {
      std::transform(fields.content.begin(), fields.content.end(), tensor.begin(), [](char byte) { return byte != 0; });
    } else if constexpr (!std::same_as<T, std::string>) {
      std::memcpy(tensor.raw_data(), fields.content.data(), fields.content.size());
    }
    return tensor;
  }
  const std::size_t values = count_of_values<T>(fields);
  const bool is_filled = values < count;
  if (values > count || (is_filled && *elements > elements_left)) {
    in.fail(str_cat(values, " values are no ", count, " elements"));
  }
  if (is_filled) elements_left -= *elements;
  Tensor<T> tensor = Tensor<T>::zeros(Shape(std::span<const std::int64_t>(fields.extents)));
  for (std::size_t i = 0; values != 0 && i < count; ++i)
    tensor.data()[i] = value_of<T>(fields, std::min(i, values - 1));
  return tensor;
}

}  // namespace detail

AnyTensor read_tensor_proto(ProtoReader in) {
  std::int64_t elements_left = max_filled_elements;
  return read_tensor_proto(in, elements_left);
}

AnyTensor read_tensor_proto(ProtoReader in, std::int64_t& elements_left) {
  const ProtoReader start = in;
  const detail::TensorProtoFields fields = detail::read_tensor_fields(in);
  const std::optional<DType> dtype = dtype_from_number(fields.dtype);
  if (fields.dtype == 0) start.fail("a tensor without an element type");
  if (!dtype || !is_element(*dtype)) {
    throw_error(Status::unimplemented(str_cat("a tensor of TensorFlow's type ", fields.dtype)));
  }
  return visit_dtype<AllTypes>(*dtype,
                               [&]<class T>() { return detail::tensor_of_fields<T>(fields, start, elements_left); });
}

void write_shape_proto(ProtoWriter& out, const PartialShape& shape) {
  if (!shape.has_rank()) return out.boolean(3, true);
  for (const std::int64_t extent : shape.dims()) {
    out.message(2, [&](ProtoWriter& dim) { dim.int64(1, extent); });
  }
}

void write_tensor_proto(ProtoWriter& out, const AnyTensor& tensor) {
  if (!is_element(tensor.dtype())) {
    throw_error(Status::invalid_argument(str_cat("a tensor of ", dtype_name(tensor.dtype()), " cannot be written")));
  }
  out.uint64(1, static_cast<std::uint64_t>(tensor.dtype()));
  out.message(2, [&](ProtoWriter& shape) { write_shape_proto(shape, tensor.shape()); });
  if (tensor.dtype() == DType::string) {
    for (const std::string& text : Tensor<std::string>::of(tensor)) out.bytes(8, text);
  } else if (tensor.bytes() != 0) {
    out.bytes(4, {static_cast<const char*>(tensor.raw_data()), tensor.bytes()});
  }
}

}  // namespace dflow
