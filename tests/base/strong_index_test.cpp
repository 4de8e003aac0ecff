#include <dflow/base/strong_index.hpp>

#include "catch.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

using dflow::IndexedVector;
using dflow::IndexRange;
using dflow::StrongIndex;

namespace {

using RowId = StrongIndex<struct RowTag>;
using ColumnId = StrongIndex<struct ColumnTag>;

template <class Vector>
concept has_array = requires(Vector& vector) { vector.data(); };

static_assert(sizeof(RowId) == 4 && std::is_trivially_copyable_v<RowId>);
static_assert(!std::is_convertible_v<int, RowId> && !std::is_convertible_v<RowId, int>);
static_assert(!std::is_constructible_v<RowId, ColumnId> && !std::is_assignable_v<RowId&, ColumnId>);
static_assert(!std::is_invocable_v<std::equal_to<>, RowId, ColumnId>);
static_assert(!std::is_invocable_v<std::equal_to<>, RowId, int>);

template <class Vector, class I>
concept IndexableBy = requires(Vector v, I i) { v[i]; };
static_assert(IndexableBy<IndexedVector<RowId, int>, RowId>);
static_assert(!IndexableBy<IndexedVector<RowId, int>, ColumnId>);
static_assert(!IndexableBy<IndexedVector<RowId, int>, std::size_t>);

}  // namespace

TEST_CASE("an index is a number of its own kind, by default of nothing", "[base]") {
  CHECK_FALSE(RowId().is_valid());
  CHECK(RowId() == RowId(-1));
  constexpr RowId third(std::size_t{3});
  CHECK(third.is_valid());
  CHECK(third.value() == 3);
  CHECK(third.position() == 3);
  CHECK(RowId(0).is_valid());
  CHECK(RowId(2) < third);
  CHECK(third >= RowId(3));
  CHECK(third + 2 == RowId(5));
  CHECK(third - RowId(5) == -2);
  RowId moving = third;
  CHECK(moving++ == RowId(3));
  CHECK(++moving == RowId(5));
  CHECK(--moving == RowId(4));
  CHECK((moving += 3) == RowId(7));
}

TEST_CASE("indices are keys of hash tables", "[base]") {
  std::unordered_map<RowId, int> numbers{{RowId(1), 10}, {RowId(2), 20}};
  CHECK(numbers.at(RowId(2)) == 20);
  CHECK_FALSE(numbers.contains(RowId()));
}

TEST_CASE("a range of indices is looped over in order", "[base]") {
  std::vector<int> seen;
  for (const RowId row : IndexRange(RowId(2), RowId(5))) seen.push_back(row.value());
  CHECK(seen == std::vector<int>{2, 3, 4});
  for (const RowId row : IndexRange<RowId>(0)) FAIL("row " << row.value());
}

TEST_CASE("the elements of an indexed vector are found by their index", "[base]") {
  IndexedVector<RowId, int> rows(2, 7);
  CHECK(rows.end_index() == RowId(2));
  rows.push_back(8);
  rows[RowId(0)] = 6;
  CHECK(std::as_const(rows)[RowId(2)] == 8);
  int sum = 0;
  for (const RowId row : rows.indices()) sum = sum * 10 + rows[row];
  CHECK(sum == 678);
  CHECK(rows == IndexedVector<RowId, int>{6, 7, 8});
  CHECK(std::span<const int>(rows).size() == 3);

  IndexedVector<ColumnId, bool> marks(3);
  marks[ColumnId(1)] = true;
  CHECK(marks == IndexedVector<ColumnId, bool>{false, true, false});

  static_assert(has_array<IndexedVector<ColumnId, int>> && has_array<const IndexedVector<ColumnId, int>>);
  static_assert(!has_array<IndexedVector<ColumnId, bool>>);  // libc++ has no data() for bool

  IndexedVector<ColumnId, std::atomic<int>> counters;
  counters = IndexedVector<ColumnId, std::atomic<int>>(2);
  CHECK(counters[ColumnId(1)].fetch_add(1) == 0);
  IndexedVector<ColumnId, std::unique_ptr<int>> owners;
  owners.push_back(std::make_unique<int>(5));
  const auto moved = std::move(owners);
  CHECK(*moved[ColumnId(0)] == 5);
}
