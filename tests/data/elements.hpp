// Small datasets, and the elements of datasets as vectors.
#pragma once

#include <dflow/data/from.hpp>

#include <ranges>
#include <utility>
#include <vector>

inline dflow::data::Dataset<int> range(int begin, int end) {
  return dflow::data::from_range(std::views::iota(begin, end));
}
inline dflow::data::Dataset<int> range(int n) { return range(0, n); }

template <class E>
std::vector<E> all(dflow::data::Iterator<E> at) {
  std::vector<E> elements;
  while (auto element = at.next()) elements.push_back(*std::move(element));
  return elements;
}
template <class E>
std::vector<E> all(const dflow::data::Dataset<E>& data) {
  return all(data.iterate());
}
