// Search in lists, tables whose row numbers are the values of an enumeration, and lists as text.
//
//   contains(names, "x")                                    whether it is one of them
//   row_where<ErrorCode>(kRows, "disk-full", &Row::text)    ErrorCode::kDiskFull
//   listed(names)                                           "x, y"
//   listed(rows, &Row::text, "; ")                          "internal; disk-full"
#pragma once
#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>

namespace warploom {
// The enumerator of the first row whose `member` equals `key`.
template <class Value, class Rows, class Key, class Member = std::identity>
std::optional<Value> row_where(const Rows& rows, const Key& key, Member member = {}) {
  const auto found = std::ranges::find(rows, key, member);
  if (found == std::ranges::end(rows)) return std::nullopt;
  return static_cast<Value>(found - std::ranges::begin(rows));
}

template <class List, class Key, class Member = std::identity>
bool contains(const List& list, const Key& key, Member member = {}) {
  return std::ranges::find(list, key, member) != std::ranges::end(list);
}

// "a, b": `text` of each element, joined by `between`.
template <class List, class Text = std::identity>
std::string listed(const List& list, Text text = {}, std::string_view between = ", ") {
  std::string out;
  for (const auto& one : list)
    out.append(std::invoke(text, one)).append(between);
  const size_t last = std::min(out.size(), between.size());  // behind the last one
  return out.substr(0, out.size() - last);
}
}  // namespace warploom
