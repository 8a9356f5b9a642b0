// Layouts as text, both ways.
#include <cctype>
#include <charconv>

#include "layout/layout.h"

namespace warploom::layout {

std::string to_string(const IntTree& tree) {
  if (tree.is_leaf) return std::to_string(tree.leaf);
  std::string text = "(";
  for (std::size_t i = 0; i < tree.kids.size(); ++i) {
    if (i) text += ',';
    text += to_string(tree.kids[i]);
  }
  return text + ")";
}

std::string to_string(const Layout& layout) { return to_string(layout.shape()) + ":" + to_string(layout.stride()); }

namespace {

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
  bool tree(IntTree& out, int depth) {
    if (depth > kDeepest) return false;
    if (!take('(')) {
      const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), out.leaf);
      if (error != std::errc{}) return false;
      rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
      return true;
    }
    out = IntTree::list({});
    if (take(')')) return true;
    do {
      if (!tree(out.kids.emplace_back(), depth + 1)) return false;
    } while (take(','));
    return take(')');
  }
};

}  // namespace

Result<Layout> parse_layout(std::string_view text) {
  Reader reader{text};
  IntTree shape, stride;
  const bool read = reader.tree(shape, 0) && reader.take(':') && reader.tree(stride, 0);
  reader.skip();
  if (!read || !reader.rest.empty()) {
    return fail({.code = ErrorCode::kLayout,
                 .message = "the text is no layout",
                 .expected = "shape:stride such as ((2,2),4):((1,8),2)",
                 .found = std::string(text)});
  }
  return make_layout(shape, stride);
}

}  // namespace warploom::layout
