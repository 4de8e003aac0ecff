// Members of collectives on some devices, and their expected results.
#pragma once

#include <dflow/dflow.hpp>
#include <dflow/runtime/cpu_device.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace dflow::testing {

inline constexpr ReduceBy all_reductions[] = {ReduceBy::sum, ReduceBy::mean, ReduceBy::product, ReduceBy::minimum,
                                              ReduceBy::maximum};

template <class T>
constexpr bool can_reduce(ReduceBy reduction) {
  return !is_complex_element<T> || (reduction != ReduceBy::minimum && reduction != ReduceBy::maximum);
}

/// Small integers, so that sums and products are exact in each element type.
template <class T>
Tensor<T> member_value(std::size_t member, const Shape& shape) {
  Tensor<T> value(shape);
  for (std::int64_t i = 0; i < shape.num_elements(); ++i) {
    const auto number = static_cast<int>((static_cast<std::size_t>(i) * 7 + member * 3) % 5);
    const auto place = static_cast<std::size_t>(i);
    if constexpr (std::is_same_v<T, std::string>) {
      value.span()[place] = std::string(static_cast<std::size_t>(number), 'a') + std::to_string(member);
    } else if constexpr (std::is_same_v<T, bool>) {
      value.span()[place] = number > 2;
    } else if constexpr (is_complex_element<T>) {
      value.span()[place] = T(static_cast<typename T::value_type>(number - 2), static_cast<typename T::value_type>(1));
    } else {
      value.span()[place] = static_cast<T>(static_cast<float>(std::is_unsigned_v<T> ? number % 3 : number - 2));
    }
  }
  return value;
}

/// The elements in one place, reduced.
template <class T>
T reduced(const std::vector<T>& elements, ReduceBy reduction) {
  if constexpr (detail::is_16_bit_float(dtype_of<T>)) {
    return static_cast<T>(reduced(std::vector<float>(elements.begin(), elements.end()), reduction));
  } else {
    T result = elements.front();
    for (std::size_t i = 1; i < elements.size(); ++i) {
      const T next = elements[i];
      if (reduction == ReduceBy::product) {
        result = static_cast<T>(result * next);
      } else if (reduction == ReduceBy::sum || reduction == ReduceBy::mean) {
        result = static_cast<T>(result + next);
      } else if constexpr (!is_complex_element<T>) {
        const bool is_better = reduction == ReduceBy::minimum ? next < result : result < next;
        result = is_better ? next : result;
      }
    }
    if (reduction != ReduceBy::mean) return result;
    return static_cast<T>(result / static_cast<T>(static_cast<float>(elements.size())));
  }
}

template <class T>
Tensor<T> reduced(const std::vector<Tensor<T>>& values, ReduceBy reduction) {
  Tensor<T> result(values.front().shape());
  std::vector<T> elements(values.size());
  const std::span<T> to = result.span();
  for (std::size_t i = 0; i < to.size(); ++i) {
    for (std::size_t v = 0; v < values.size(); ++v) elements[v] = values[v].span()[i];
    to[i] = reduced(elements, reduction);
  }
  return result;
}

template <class T>
Tensor<T> gathered(const std::vector<Tensor<T>>& values) {
  std::vector<T> elements;
  std::int64_t rows = 0;
  for (const Tensor<T>& value : values) {
    for (const T& element : value.span()) elements.push_back(element);
    rows += value.shape()[0];
  }
  Shape shape = values.front().shape();
  std::vector<std::int64_t> dims(shape.begin(), shape.end());
  dims[0] = rows;
  Tensor<T> result{Shape(dims)};
  for (std::size_t i = 0; i < elements.size(); ++i) result.span()[i] = elements[i];
  return result;
}

template <class T>
bool are_equal(const Tensor<T>& a, const Tensor<T>& b) {
  if (a.shape() != b.shape()) return false;
  const T* const x = a.data();
  const T* const y = b.data();
  for (std::int64_t i = 0, n = a.num_elements(); i < n; ++i) {
    if (!(x[i] == y[i])) return false;
  }
  return true;
}

/// Placeholders, one on each device; shapes are known if `is_static`.
template <class T>
struct Members {
  std::vector<Output<T>> fed;
  std::vector<Output<T>> values;
  std::vector<Tensor<T>> tensors;

  Members(Graph& graph, const std::vector<std::string>& devices, const std::vector<Shape>& shapes,
          bool is_static = true) {
    for (std::size_t i = 0; i < devices.size(); ++i) {
      const auto on = graph.device(devices[i]);
      tensors.push_back(member_value<T>(i, shapes[i]));
      fed.push_back(placeholder<T>(graph, is_static ? PartialShape(shapes[i]) : PartialShape::unknown()));
      values.push_back(identity(fed.back()));
    }
  }
  Members(Graph& graph, const std::vector<std::string>& devices, const Shape& shape, bool is_static = true)
      : Members(graph, devices, std::vector<Shape>(devices.size(), shape), is_static) {}

  std::vector<Feed> feeds() const {
    std::vector<Feed> feeds;
    for (std::size_t i = 0; i < fed.size(); ++i) feeds.emplace_back(fed[i], tensors[i]);
    return feeds;
  }
};

/// The values of edges of one type in a step.
template <class T>
std::vector<Tensor<T>> results_of(Session& session, const std::vector<Feed>& feeds,
                                  const std::vector<Output<T>>& edges) {
  const std::vector<AnyOutput> erased(edges.begin(), edges.end());
  std::vector<AnyTensor> results(erased.size());
  session.run_erased({}, nullptr, feeds, erased, {}, results);
  std::vector<Tensor<T>> tensors;
  for (AnyTensor& each : results) tensors.emplace_back(std::move(each));
  return tensors;
}

/// "/device:CPU:0" and so on, `count` members on `devices` of them.
inline std::vector<std::string> member_devices(std::string_view type, std::size_t count, std::size_t devices) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(str_cat("/device:", type, ":", i % devices));
  return names;
}

}  // namespace dflow::testing
