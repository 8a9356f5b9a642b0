#include "layout/layout.h"

#include <cassert>

namespace warploom::layout {

IntTree IntTree::list(std::vector<IntTree> kids) {
  IntTree tree;
  tree.is_leaf = false;
  tree.kids = std::move(kids);
  return tree;
}

Layout Layout::list(std::vector<Layout> parts) {
  Layout result;
  result.leaf_ = false;
  result.parts_ = std::move(parts);
  return result;
}

Layout Layout::flat(const std::vector<Mode>& modes) {
  if (modes.empty()) return {};
  if (modes.size() == 1) return Layout(modes[0].extent, modes[0].stride);
  std::vector<Layout> parts;
  parts.reserve(modes.size());
  for (const Mode& mode : modes) parts.emplace_back(mode.extent, mode.stride);
  return list(std::move(parts));
}

const Layout& Layout::part(int i) const {
  assert(i >= 0 && i < rank());
  return leaf_ ? *this : parts_[static_cast<std::size_t>(i)];
}

int Layout::rank() const { return leaf_ ? 1 : static_cast<int>(parts_.size()); }

int Layout::depth() const {
  if (leaf_) return 0;
  int deepest = 0;
  for (const Layout& part : parts_) deepest = std::max(deepest, part.depth());
  return deepest + 1;
}

std::int64_t Layout::size() const {
  if (leaf_) return mode_.extent;
  std::int64_t product = 1;
  for (const Layout& part : parts_) product *= part.size();
  return product;
}

std::int64_t Layout::cosize() const {
  if (leaf_) return (mode_.extent - 1) * mode_.stride + 1;
  std::int64_t largest = 0;
  for (const Layout& part : parts_) largest += part.cosize() - 1;
  return largest + 1;
}

namespace {

void collect(const Layout& layout, std::vector<Mode>& out) {
  if (layout.is_leaf()) return out.push_back(layout.mode());
  for (const Layout& part : layout.parts()) collect(part, out);
}

IntTree leaves_of(const Layout& layout, std::int64_t Mode::*field) {
  if (layout.is_leaf()) return layout.mode().*field;
  std::vector<IntTree> kids;
  for (const Layout& part : layout.parts()) kids.push_back(leaves_of(part, field));
  return IntTree::list(std::move(kids));
}

}  // namespace

std::vector<Mode> Layout::modes() const {
  std::vector<Mode> out;
  collect(*this, out);
  return out;
}

IntTree Layout::shape() const { return leaves_of(*this, &Mode::extent); }
IntTree Layout::stride() const { return leaves_of(*this, &Mode::stride); }

std::int64_t Layout::operator()(std::int64_t index) const {
  if (leaf_) return index * mode_.stride;
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (i + 1 == parts_.size()) return sum + parts_[i](index);
    const std::int64_t size = parts_[i].size();
    sum += parts_[i](index % size);
    index /= size;
  }
  return sum;
}

std::int64_t Layout::operator()(const IntTree& coord) const {
  if (coord.is_leaf) return (*this)(coord.leaf);
  assert(static_cast<int>(coord.kids.size()) == rank() && !leaf_);
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < parts_.size(); ++i) sum += parts_[i](coord.kids[i]);
  return sum;
}

Result<Layout> make_layout(const IntTree& shape, const IntTree& stride) {
  if (shape.is_leaf != stride.is_leaf || shape.kids.size() != stride.kids.size()) {
    return fail({.code = ErrorCode::kLayout,
                 .message = "shape and stride have different forms",
                 .expected = "a stride of the form of " + to_string(shape),
                 .found = to_string(stride)});
  }
  if (shape.is_leaf) {
    if (shape.leaf < 1 || stride.leaf < 0) {
      return fail({.code = ErrorCode::kLayout,
                   .message = "a mode is out of range",
                   .expected = "an extent of at least 1 and a stride of at least 0",
                   .found = to_string(shape) + ":" + to_string(stride)});
    }
    return Layout(shape.leaf, stride.leaf);
  }
  std::vector<Layout> parts;
  for (std::size_t i = 0; i < shape.kids.size(); ++i) {
    WARPLOOM_TRY(Layout part, make_layout(shape.kids[i], stride.kids[i]));
    parts.push_back(std::move(part));
  }
  return Layout::list(std::move(parts));
}

namespace {

Layout compact_from(const IntTree& shape, std::int64_t& stride) {
  if (shape.is_leaf) {
    const Layout leaf(shape.leaf, stride);
    stride *= shape.leaf;
    return leaf;
  }
  std::vector<Layout> parts;
  for (const IntTree& kid : shape.kids) parts.push_back(compact_from(kid, stride));
  return Layout::list(std::move(parts));
}

}  // namespace

Layout make_layout(const IntTree& shape) {
  std::int64_t stride = 1;
  return compact_from(shape, stride);
}

Layout make_layout(std::vector<Layout> parts) { return Layout::list(std::move(parts)); }

Layout flatten(const Layout& layout) { return Layout::flat(layout.modes()); }

namespace {

Layout joined(const std::vector<Mode>& modes, bool keep_zero_strides) {
  std::vector<Mode> out;
  for (const Mode& mode : modes) {
    if (mode.extent == 1 || (mode.stride == 0 && !keep_zero_strides)) continue;
    if (!out.empty() && mode.stride == out.back().extent * out.back().stride) {
      out.back().extent *= mode.extent;
    } else {
      out.push_back(mode);
    }
  }
  return Layout::flat(out);
}

}  // namespace

Layout coalesce(const Layout& layout) { return joined(layout.modes(), true); }
Layout filter(const Layout& layout) { return joined(layout.modes(), false); }

}  // namespace warploom::layout
