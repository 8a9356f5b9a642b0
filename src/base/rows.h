// Enumerations that number the rows of a table: the value of the row where `member` is `key`.
#pragma once
#include <algorithm>
#include <functional>
#include <optional>
namespace warploom {
template <class Value, class Rows, class Key, class Member = std::identity>
std::optional<Value> row_where(const Rows& rows, const Key& key, Member member = {}) {
  const auto found = std::ranges::find(rows, key, member);
  if (found == std::ranges::end(rows)) return std::nullopt;
  return static_cast<Value>(found - std::ranges::begin(rows));
}
}  // namespace warploom
