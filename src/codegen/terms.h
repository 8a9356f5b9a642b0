// Coordinates as index expressions, the address expressions made from them, names, the text that
// they go into, and its writers.
//
// A coordinate along one dimension is an offset of the program plus digits of the thread's number
// and variables of loops over its values, each times a step. Memory modes cut it at boundaries
// (swizzle atoms of 64 elements, say). Where no carry can cross a boundary, which the variables'
// ranges tell, the address is linear in them, and is written as such; elsewhere it is written with
// / and %.
#pragma once
#include <fmt/format.h>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/error.h"
#include "codegen/launch_list.h"
#include "layout/memory_layout.h"
#include "synth/sites.h"
#include "target/capabilities.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::codegen {
using namespace tile;  // what this room writes is of programs throughout

// index · factor and index / by, term by term of a sum; `by` must divide what the ranges do not
// tell to be below it.
Index scaled(const Index& index, int64_t factor);
Index quotient(const Index& index, int64_t by, const synth::IndexRanges& ranges);
// The terms of a sum that name no loop over values (i, i0, i1, …), and those that do.
std::pair<Index, Index> without_loops(const Index& index);
// The element offset along one dimension of a memory layout.
Index offset_in(Index coordinate, const std::vector<layout::MemoryMode>& modes,
                const synth::IndexRanges& ranges);

// A number of several digits, the lowest first: a + b · 4 + c · 32, below `count`.
struct Digits {
  Index number = 0;
  int64_t count = 1;

  void add(const Index& digit, int64_t extent) {
    number = number + digit * count;
    count *= extent;
  }
};

inline std::string plus(const std::string& base, const Index& offset) {
  return offset.constant() == 0 ? base : base + " + " + offset.text();
}

// A program as C++ can say it. Names that the text needs for itself get an underscore, or several;
// and since C++ divides towards zero, what may be negative is divided after a multiple of the
// divisor was added.
//
//   for i0 in 0 .. 3, where the text counts values with i0      →      for i0_ in 0 .. 3
//   (k - 8) / 16                                                →      (k + 8) / 16 - 1
//
// `taken`: names that must not be. Statements stay where they are in their bodies.
Program in_source_terms(const Program& program, const std::regex& taken);

std::string float_text(double value);      // a literal of type float
std::string whole_literal(int64_t value);  // of type long long
bool has_coordinates(const Value& value);

// Text with indentation: lines are added, blocks opened and closed.
class Writer {
 public:
  template <class... Args> void line(fmt::format_string<Args...> format, Args&&... args) {
    text_.append(static_cast<size_t>(depth_) * 2, ' ');
    text_ += fmt::format(format, std::forward<Args>(args)...);
    text_ += '\n';
  }

  template <class... Args> void open(fmt::format_string<Args...> format, Args&&... args) {
    line(format, std::forward<Args>(args)...);
    ++depth_;
  }

  void close() {
    --depth_;
    line("}}");
  }

  struct [[nodiscard]] Block {  // open to the end of its life
    Writer& out;
    size_t levels = 1;

    ~Block() {
      for (; levels > 0; --levels)
        out.close();
    }
  };

  template <class... Args> Block block(fmt::format_string<Args...> format, Args&&... args) {
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

// The source of a kernel from a file of resources/ and the values for its places. The symbol is
// `name`, a parameter of this step alone: the kernel remembers where it stands (renamed()).
void set_source(Kernel& kernel, const std::string& file, nlohmann::json record);

// What the writers of kernels have in common.
struct Emitter {
  // given: by whose names the kernel's arguments go
  const Program& program_;
  const Program& given_;
  const target::Capabilities& capabilities_;
  Writer out_ = {};
  const Statement* at_ = nullptr;    // the statement being written
  std::optional<Error> error_ = {};  // the first

  const Tensor& tensor(TensorId id) const { return program_.tensor(id); }

  void refuse(std::string message, std::string expected, std::string found,
              std::string remedy);  // no-instruction, of `at_`
};
}  // namespace warploom::codegen
