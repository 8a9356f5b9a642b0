// Text with indentation: lines are added, blocks opened and closed.
#pragma once
#include <fmt/format.h>
#include <string>
namespace warploom::codegen {
class Writer {
 public:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    text_ += std::string(static_cast<std::size_t>(depth_) * 2, ' ') + fmt::format(format, std::forward<Args>(args)...) + '\n';
  }
  template <class... Args>
  void open(fmt::format_string<Args...> format, Args&&... args) {
    line(format, std::forward<Args>(args)...);
    ++depth_;
  }
  void close(std::string_view tail = "}") {
    --depth_;
    line("{}", tail);
  }
  void indent() { ++depth_; }
  void outdent() { --depth_; }
  void raw(std::string_view text) { text_ += text; }  // already indented
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  int depth_ = 0;
};
}  // namespace warploom::codegen
