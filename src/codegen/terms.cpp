#include "codegen/terms.h"
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "base/rendered.h"
#include "codegen/launch_list.h"
#include "layout/memory_layout.h"
#include "synth/sites.h"
#include "tile/index.h"
#include "tile/program.h"
#include "tile/syntax.h"

namespace warploom::codegen {
namespace {
using synth::IndexRanges;

// Of a sum: an index that is no sum and no multiple, 1 for a number.
struct Term {
  Index index;
  int64_t factor;

  Index whole() const { return index * factor; }
};

void add_terms(const Index& index, int64_t factor, std::vector<Term>& to) {
  std::optional<int64_t> times;
  if (index.op() == IndexOp::mul) times = index.right().constant();
  const bool adds = index.op() == IndexOp::add;
  if (adds || index.op() == IndexOp::sub) {
    add_terms(index.left(), factor, to);
    add_terms(index.right(), adds ? factor : -factor, to);
  } else if (times)
    add_terms(index.left(), factor * *times, to);
  else if (const auto number = index.constant())
    to.push_back({1, factor * *number});
  else
    to.push_back({index, factor});
}

std::vector<Term> terms_of(const Index& index) {
  std::vector<Term> terms;
  add_terms(index, 1, terms);
  return terms;
}

// What lies below a boundary of a coordinate and what above, in units of it.
struct Parts {
  Index low = 0;
  Index high = 0;
};

Parts cut(const Index& index, int64_t at, const IndexRanges& ranges) {
  Parts parts;
  int64_t reach = 0;  // the most that lies below: beyond the boundary a carry may cross it
  for (const Term& term : terms_of(index)) {
    const Index whole = term.whole();
    const auto range = ranges.of(term.index);
    if (term.factor % at == 0 || whole.known_divisor() % at == 0) {
      parts.high = parts.high + whole / at;
    } else if (const auto number = whole.constant()) {
      parts.low = parts.low + whole % at;
      parts.high = parts.high + whole / at;
      reach += (whole % at).value();
    } else if (range.low < 0 || term.factor < 0) {
      reach = at;
    } else if (range.high <= (at - 1) / term.factor) {
      parts.low = parts.low + whole;
      reach += range.high * term.factor;
    } else if (at % term.factor == 0) {
      const int64_t per = at / term.factor;
      parts.low = parts.low + term.index % per * term.factor;
      parts.high = parts.high + term.index / per;
      reach += at - term.factor;
    } else {
      reach = at;
    }
  }
  return reach < at ? parts : Parts{index % at, index / at};
}

struct Renamer {
  const std::regex& taken;
  const synth::Bounds& bounds;
  std::set<std::string> used;                // names that stay
  std::map<std::string, std::string> fresh;  // of loop variables and others that change

  void name(std::string& name) {
    const auto [known, is_new] = fresh.try_emplace(name, name);
    while (is_new && (std::regex_match(known->second, taken) ||
                      (known->second != name && used.contains(known->second))))
      known->second += '_';
    used.insert(name = known->second);
  }

  Index index(const Index& i) const {
    if (i.op() == IndexOp::constant) return i;
    if (i.op() == IndexOp::variable) {
      const auto found = fresh.find(i.name());
      return found == fresh.end() ? i : Index::variable(found->second);
    }
    const Index left = index(i.left());
    const Index right = index(i.right());
    const bool divides = i.op() == IndexOp::div || i.op() == IndexOp::mod;
    const int64_t least = divides ? bounds.of(i.left()).low : 0;
    if (least >= 0 || least < -(1 << 24)) return Index::make(i.op(), left, right);
    const int64_t by = right.constant().value_or(1);
    const int64_t times = (by - 1 - least) / by;
    const Index raised = Index::make(i.op(), left + right * times, right);
    return i.op() == IndexOp::div ? raised - times : raised;
  }

  // What a line of the text form holds (tile/syntax.h), of which the indices change.
  void item(Index& i) { i = index(i); }

  void item(std::optional<Index>& i) {
    if (i) item(*i);
  }

  void item(Tile& tile) {
    for (Index& at : tile.offset)
      item(at);
  }

  void item(Value& value) {
    item(value.shift);
    for (Value& operand : value.operands)
      item(operand);
  }

  template <class T> void item(Optional<T> optional) { item(optional.value); }

  void item(const auto&) {}

  template <class Node> void statement(Node& node) {
    line(*this, node);
    if constexpr (requires { node.variable; }) name(node.variable);
    if constexpr (requires { node.body; }) body(node.body);
    if constexpr (requires { node.roles; })
      for (Role& role : node.roles)
        body(role.body);
  }

  void body(Body& statements) {
    for (Statement& s : statements)
      std::visit([this](auto& node) { statement(node); }, s.node);
  }
};
}  // namespace

Index scaled(const Index& index, int64_t factor) {
  Index sum = 0;
  for (const Term& term : terms_of(index))
    sum = sum + term.whole() * factor;
  return sum;
}

std::pair<Index, Index> without_loops(const Index& index) {
  static const std::regex kLoop("\\bi[0-9]*\\b");
  std::pair<Index, Index> parts{0, 0};
  for (const Term& term : terms_of(index)) {
    const bool looped = std::regex_search(term.index.text(), kLoop);
    Index& part = looped ? parts.second : parts.first;
    part = part + term.whole();
  }
  return parts;
}

Index quotient(const Index& index, int64_t by, const IndexRanges& ranges) {
  return cut(index, by, ranges).high;
}

Index offset_in(Index coordinate, const std::vector<layout::MemoryMode>& modes,
                const IndexRanges& ranges) {
  Index sum = 0;
  for (size_t i = 0; i < modes.size(); ++i) {
    const bool last = i + 1 == modes.size();
    const Parts parts = last ? Parts{coordinate, 0} : cut(coordinate, modes[i].extent, ranges);
    sum = sum + scaled(parts.low, modes[i].stride);
    coordinate = parts.high;
  }
  return sum;
}

std::string whole_literal(int64_t value) {
  if (value == std::numeric_limits<int64_t>::min())
    return fmt::format("(-{}ll - 1)", std::numeric_limits<int64_t>::max());
  return fmt::format("{}ll", value);
}

std::string float_text(double value) {
  // By their bits: nvcc divides at run time where a quotient of constants is not finite.
  if (std::isnan(value)) return "wl::float_of(0x7fc00000u)";
  const auto narrow = as_float(value);
  if (std::isinf(narrow))
    return narrow < 0 ? "wl::float_of(0xff800000u)" : "wl::float_of(0x7f800000u)";
  const std::string text = fmt::format("{}", narrow);
  return text + (text.find_first_of(".e") == std::string::npos ? ".0f" : "f");
}

bool has_coordinates(const Value& value) {
  return value.kind == Value::Kind::coordinate ||
         std::ranges::any_of(value.operands, has_coordinates);
}

void Emitter::refuse(std::string message, std::string expected, std::string found,
                     std::string remedy) {
  if (error_) return;
  const std::string place = at_ ? place_of(*at_) : place_of(program_);
  error_ = {ErrorCode::kNoInstruction, std::move(message), place,
            std::move(expected),       std::move(found),   std::move(remedy)};
}

void set_source(Kernel& kernel, const std::string& file, nlohmann::json record) {
  constexpr char kMark = '\x01';  // no text holds it
  record["name"] = std::string(1, kMark);
  const std::string marked = rendered(resource(file), record);
  kernel.source.clear();
  kernel.symbol_at.clear();
  for (const char c : marked) {
    if (c == kMark) {
      kernel.symbol_at.push_back(kernel.source.size());
      kernel.source += kernel.name;
    } else {
      kernel.source += c;
    }
  }
}

Program in_source_terms(const Program& given, const std::regex& taken) {
  Program program = given;
  const synth::Bounds bounds(given);
  Renamer renamer{taken, bounds, {}, {}};
  for (const Tensor& t : program.tensors)
    renamer.used.insert(t.name);
  for (const Pipeline& p : program.pipelines)
    renamer.used.insert(p.name);
  for (const synth::Site& site : synth::sites_of(given))
    if (const auto* loop = site.statement->as<For>()) renamer.used.insert(loop->variable);
  for (Tensor& t : program.tensors)
    renamer.name(t.name);
  for (Pipeline& p : program.pipelines)
    renamer.name(p.name);
  renamer.body(program.body);
  return program;
}
}  // namespace warploom::codegen
