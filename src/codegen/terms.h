// Terms: sums of digit × step that stand for a coordinate, and the address expressions made from them.
//
// A coordinate along one dimension is an offset (an index expression of the program) plus terms: digits of the thread index and
// loop variables, each below an extent, each with a step. Memory modes cut the coordinate at boundaries (64-element panels,
// say). Where no carry can cross a boundary the address is linear in the terms, and is written as such; elsewhere it is written
// with / and %.
#pragma once
#include "layout/memory_layout.h"
#include "tile/program.h"
namespace warploom::codegen {
using namespace tile;  // what this room writes is of programs throughout

struct Term {
  std::string variable;  // a C expression of high precedence, in [0, extent)
  std::int64_t extent = 1, step = 1;
};

struct Coordinate {
  Index offset = 0;
  std::vector<Term> terms;
};

// "a + b * 4 + 7" of the parts that are not "0"; "0" when none is left.
std::string sum(const std::vector<std::string>& parts);
std::string times(const std::string& variable, std::int64_t factor);
std::string parenthesized(const std::string& expression);  // only where it is no single name or number

std::string float_text(double value);  // a literal of type float
// A number of several digits, the lowest first: "a + b * 4 + c * 32", below `count`.
struct Digits {
  std::vector<std::string> parts;
  std::int64_t count = 1;
  void add(const std::string& variable, std::int64_t extent) {
    parts.push_back(times(variable, count));
    count *= extent;
  }
  std::string text() const { return sum(parts); }
};

std::string text(const Coordinate& coordinate);
bool has_coordinates(const Value& value);

// The element offset along one dimension of a memory layout: a sum of C expressions.
std::vector<std::string> offset_parts(const Coordinate& coordinate, const std::vector<layout::MemoryMode>& modes,
                                      std::int64_t scale);

// Text with indentation: lines are added, blocks opened and closed.
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
  void close() {
    --depth_;
    line("}}");
  }
  struct [[nodiscard]] Block {  // open to the end of its life
    Writer& out;
    std::size_t levels = 1;
    ~Block() {
      for (; levels > 0; --levels) out.close();
    }
  };
  template <class... Args>
  Block block(fmt::format_string<Args...> format, Args&&... args) {
    open(format, std::forward<Args>(args)...);
    return {*this};
  }
  Block block_if(const std::string& condition) {  // none where the condition is empty
    if (!condition.empty()) open("if ({}) {{", condition);
    return {*this, !condition.empty()};
  }
  void indent() { ++depth_; }
  void raw(std::string_view text) { text_ += text; }  // already indented
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  int depth_ = 0;
};
}  // namespace warploom::codegen
