#include "layout/layout.h"
#include <cassert>
#include <cctype>
#include <charconv>
namespace warploom::layout {
namespace {
void collect(const Layout& layout, std::vector<Mode>& out) {
  if (layout.is_leaf()) return out.push_back(layout.mode());
  for (const Layout& part : layout.parts()) collect(part, out);
}

Layout joined(const std::vector<Mode>& modes, bool keep_zero_strides) {
  std::vector<Mode> out;
  for (const Mode& mode : modes) {
    if (mode.extent == 1 || (mode.stride == 0 && !keep_zero_strides)) continue;
    if (!out.empty() && mode.stride == out.back().extent * out.back().stride) out.back().extent *= mode.extent;
    else out.push_back(mode);
  }
  return Layout::flat(out);
}

std::string text_of(const Layout& layout, std::int64_t Mode::*field) {
  if (layout.is_leaf()) return std::to_string(layout.mode().*field);
  std::string text;
  for (const Layout& part : layout.parts()) text += (text.empty() ? "" : ",") + text_of(part, field);
  return "(" + text + ")";
}

constexpr int kDeepest = 64;  // lists nested deeper than this are refused, so that no text overflows the stack

struct Reader {
  std::string_view rest;

  void skip() {
    while (!rest.empty() && std::isspace(static_cast<unsigned char>(rest.front()))) rest.remove_prefix(1);
  }
  bool take(char c) {
    skip();
    if (rest.empty() || rest.front() != c) return false;
    rest.remove_prefix(1);
    return true;
  }
  bool number(std::int64_t least, std::int64_t& out) {
    skip();
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), out);
    if (error != std::errc{} || out < least) return false;
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    return true;
  }
  // A tree of extents, or, where `shape` is given, a tree of strides of the same form.
  bool tree(const Layout* shape, Layout& out, int depth = 0) {
    if (depth > kDeepest) return false;
    std::int64_t value = 0;
    if (!take('(')) {
      if ((shape && !shape->is_leaf()) || !number(shape ? 0 : 1, value)) return false;
      out = shape ? Layout(shape->mode().extent, value) : Layout(value, 0);
      return true;
    }
    if (shape && shape->is_leaf()) return false;
    std::vector<Layout> parts;
    do {
      if (shape && parts.size() == shape->parts().size()) return false;
      const Layout* form = shape ? &shape->parts()[parts.size()] : nullptr;
      if (!tree(form, parts.emplace_back(), depth + 1)) return false;
    } while (take(','));
    const bool whole = !shape || parts.size() == shape->parts().size();
    out = Layout::list(std::move(parts));
    return whole && take(')');
  }
};
}  // namespace
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
  for (const Mode& mode : modes) parts.emplace_back(mode.extent, mode.stride);
  return list(std::move(parts));
}

const Layout& Layout::part(int i) const {
  assert(i >= 0 && i < rank());
  return leaf_ ? *this : parts_[static_cast<std::size_t>(i)];
}

int Layout::rank() const { return leaf_ ? 1 : static_cast<int>(parts_.size()); }

std::int64_t Layout::size() const {
  std::int64_t product = mode_.extent;  // 1 for a list
  for (const Layout& part : parts_) product *= part.size();
  return product;
}

std::int64_t Layout::cosize() const {
  std::int64_t largest = (mode_.extent - 1) * mode_.stride;
  for (const Layout& part : parts_) largest += part.cosize() - 1;
  return largest + 1;
}

std::vector<Mode> Layout::modes() const {
  std::vector<Mode> out;
  collect(*this, out);
  return out;
}

std::int64_t Layout::operator()(std::int64_t index) const {
  if (leaf_) return index * mode_.stride;
  std::int64_t sum = 0;
  for (const Layout& part : parts_) {
    if (&part == &parts_.back()) return sum + part(index);
    sum += part(index % part.size());
    index /= part.size();
  }
  return sum;
}

Layout coalesce(const Layout& layout) { return joined(layout.modes(), true); }
Layout filter(const Layout& layout) { return joined(layout.modes(), false); }

std::string to_string(const Layout& layout) { return text_of(layout, &Mode::extent) + ":" + text_of(layout, &Mode::stride); }

Result<Layout> parse_layout(std::string_view text) {
  Reader reader{text};
  Layout shape, layout;
  const bool read = reader.tree(nullptr, shape) && reader.take(':') && reader.tree(&shape, layout);
  reader.skip();
  if (read && reader.rest.empty()) return layout;
  return layout_error("the text is no layout",
                      "shape:stride of one form such as ((2,2),4):((1,8),2), extents of 1 or more, strides of 0 or more",
                      std::string(text));
}

tl::unexpected<Error> layout_error(std::string message, std::string expected, std::string found) {
  return fail({ErrorCode::kLayout, std::move(message), {}, std::move(expected), std::move(found)});
}
}  // namespace warploom::layout
