// What the layout tests share: layouts from text, all small layouts, random nested ones.
#pragma once
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <set>
#include <vector>
#include "layout/layout.h"
#include "layout/tv_layout.h"
namespace warploom::layout {
inline Layout L(std::string_view text) {
  auto layout = parse_layout(text);
  EXPECT_TRUE(layout.has_value()) << text;
  return layout ? *layout : Layout();
}

// Every flat layout of `leaves` leaves over the given extents and strides.
inline std::vector<Layout> all_layouts(int leaves, const std::vector<std::int64_t>& extents,
                                       const std::vector<std::int64_t>& strides) {
  std::vector<std::vector<Mode>> lists = {{}};
  for (int i = 0; i < leaves; ++i) {
    std::vector<std::vector<Mode>> longer;
    for (const auto& list : lists) {
      for (const auto e : extents) {
        for (const auto s : strides) {
          longer.push_back(list);
          longer.back().push_back({e, s});
        }
      }
    }
    lists = std::move(longer);
  }
  std::vector<Layout> out;
  for (const auto& list : lists) out.push_back(Layout::flat(list));
  return out;
}

inline std::vector<Layout> small_layouts() {
  std::vector<Layout> out;
  for (int leaves = 1; leaves <= 2; ++leaves) {
    for (auto& l : all_layouts(leaves, {1, 2, 3, 4, 6}, {0, 1, 2, 3, 4, 6, 8, 12})) out.push_back(std::move(l));
  }
  for (auto& l : all_layouts(3, {2, 4}, {0, 1, 2, 4, 8, 16})) out.push_back(std::move(l));
  return out;
}

// A random tree. Strides are products of small extents, so that a good part of what is drawn can be combined.
inline Layout random_layout(int depth = 2) {
  const int parts = depth == 0 ? 0 : *rc::gen::inRange(0, 4);
  if (parts == 0) {
    const auto extent = *rc::gen::element<std::int64_t>(1, 2, 2, 3, 4, 8);
    return {extent, *rc::gen::element<std::int64_t>(0, 1, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64)};
  }
  std::vector<Layout> list;
  for (int i = 0; i < parts; ++i) list.push_back(random_layout(depth - 1));
  return Layout::list(std::move(list));
}

// A random layout that is a bijection of [0, size): compact leaves, in random order.
inline Layout random_bijection() {
  std::vector<Mode> modes;
  std::int64_t stride = 1;
  for (int i = *rc::gen::inRange(1, 5); i > 0; --i) {
    const auto extent = *rc::gen::element<std::int64_t>(2, 2, 3, 4);
    modes.insert(modes.begin() + *rc::gen::inRange(0, static_cast<int>(modes.size()) + 1), Mode{extent, stride});
    stride *= extent;
  }
  return Layout::flat(modes);
}

inline std::multiset<std::int64_t> image(const Layout& layout) {
  std::multiset<std::int64_t> out;
  for (std::int64_t i = 0; i < layout.size(); ++i) out.insert(layout(i));
  return out;
}

inline bool same_function(const Layout& a, const Layout& b) {
  if (a.size() != b.size()) return false;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    if (a(i) != b(i)) return false;
  }
  return true;
}
}  // namespace warploom::layout
