// The lines of the text form, each described once as what follows what: a Reader fills the node
// from the tokens of a line, a Writer prints it. A string is a sign, its blanks the printer's;
// docs/tile.md has the grammar.
#pragma once
#include <array>
#include <optional>
#include "base/rows.h"
#include "tile/program.h"

namespace warploom::tile {
// In the order of Statement::node.
inline constexpr std::array<std::string_view, 19> kStatementWords = {
    "copy",        "fill",           "map",         "mma", "reduce",  "scan",    "rearrange",
    "reinterpret", "cluster_reduce", "for",         "if",  "produce", "consume", "roles",
    "signal",      "wait",           "cluster_sync"};

struct TensorWord {
  std::string_view word;
  Scope scope;
  bool writable;
};

inline constexpr std::array<TensorWord, 4> kTensorWords = {{{"global", Scope::global, false},
                                                            {"output", Scope::global, true},
                                                            {"shared", Scope::shared, false},
                                                            {"register", Scope::reg, false}}};

struct IndexWord {
  std::string_view text;
  int precedence;  // binds tighter where larger; 3: never needs parentheses
};

// In the order of IndexOp. Emitted source, and so the text form, puts wl:: before min and max.
inline constexpr std::array<IndexWord, 9> kIndexWords = {
    {{"", 3}, {"", 3}, {"+", 1}, {"-", 1}, {"*", 2}, {"/", 2}, {"%", 2}, {"min", 3}, {"max", 3}}};

inline std::string_view name_of(ReduceOp op) {
  return reduction_of(op).name;
}

inline std::optional<ReduceOp> reduce_op_named(std::string_view name) {
  return row_where<ReduceOp>(kReductions, name, &Reduction::name);
}

using warploom::name_of;  // types and operations too, which the overload above would hide

// Items that their type alone does not tell apart. T may be const.
template <class T> struct Flag {
  std::string_view word;
  T& on;
};

template <class T> struct Optional {  // a word and what follows it
  std::string_view word;
  bool there;  // when printed
  T value;
};
template <class T> Optional(std::string_view, bool, T&&) -> Optional<T>;

template <class T> struct Named {  // a tensor or a pipeline by its name
  T& id;
  bool is_pipeline = false;
};

template <class T> struct Extents {
  T& list;
};
template <class T> Flag(std::string_view, T&) -> Flag<T>;
template <class T> Named(T&, bool = false) -> Named<T>;
template <class T> Extents(T&) -> Extents<T>;

void all(auto& io, auto&&... items) {
  (io.item(items), ...);
}

void line(auto& io, Of<Program> auto& p) {
  const bool clusters = p.cluster != std::vector<int64_t>{1, 1, 1};
  all(io, "program ", p.name, " grid", Extents{p.grid});
  all(io, Optional{" cluster", clusters, Extents{p.cluster}});
  all(io, Optional{" warps ", true, p.warps}, Flag{" cooperative", p.cooperative});
}

void line(auto& io, Of<Tensor> auto& t) {
  io.keyword(t);
  all(io, " ", t.name, " ", t.dtype, " ", t.shape);
  if (t.scope == Scope::global) {
    const bool padded = t.strides != dense_strides(t.shape);
    all(io, Optional{" strides ", padded, t.strides});
    all(io, Flag{" zeroed", t.zeroed}, Flag{" packed", t.prepacked});
  }
  if (t.scope == Scope::shared) {
    all(io, Optional{" windows ", t.as_strided >= 0, Named{t.as_strided}});
    all(io, Optional{" from ", t.from != 0, t.from});
    all(io, Optional{" strides ", !t.strides.empty(), t.strides});
  }
}

void line(auto& io, Of<Pipeline> auto& p) {
  all(io, "pipeline ", p.name, " stages ", p.stages, " { ", p.tensors, " }");
}

void line(auto& io, Of<Copy> auto& s) {
  const bool fills = s.fill != 0 || std::signbit(s.fill);
  all(io, s.src, " -> ", s.dst, Optional{" fill ", fills, s.fill});
  all(io, Flag{" streaming", s.streaming});
  all(io, Optional{" multicast ", !s.multicast.empty(), s.multicast});
  all(io, Optional{" peer ", s.peer.has_value(), s.peer});
  all(io, Optional{" combine ", s.combine.has_value(), s.combine});
}

void line(auto& io, Of<Fill> auto& s) {
  all(io, Named{s.dst}, " ", s.value);
}

void line(auto& io, Of<Map> auto& s) {
  all(io, Named{s.dst}, " = ", s.value, Flag{" integers", s.integers});
}

void line(auto& io, Of<Mma> auto& s) {
  all(io, Named{s.acc}, " += ");
  all(io, s.a, Flag{"^T", s.transpose_a}, " * ");
  all(io, s.b, Flag{"^T", s.transpose_b});
}

void line(auto& io, Of<Reduce, Scan> auto& s) {
  all(io, s.op, " over ", s.axis);
  if constexpr (requires { s.reverse; }) all(io, Flag{" reverse", s.reverse});
  all(io, ": ", Named{s.src}, " -> ", Named{s.dst});
}

void line(auto& io, Of<ConvertLayout> auto& s) {
  all(io, Named{s.src}, Flag{"^T", s.transpose});
  all(io, " -> ", Named{s.dst});
}

void line(auto& io, Of<Bitcast> auto& s) {
  all(io, Named{s.src}, " -> ", Named{s.dst});
}

void line(auto& io, Of<ClusterReduce> auto& s) {
  all(io, s.op, " ", Named{s.dst});
}

void line(auto& io, Of<For> auto& s) {
  all(io, s.variable, " in ", s.begin, " .. ", s.end);
  all(io, Optional{" step ", s.step.constant() != 1, s.step});
  all(io, Flag{" unroll", s.unroll}, ":");
}

void line(auto& io, Of<If> auto& s) {
  all(io, s.left, " < ", s.right, ":");
}

void line(auto& io, Of<Produce> auto& s) {
  all(io, Named{s.pipeline, true}, ":");
}

void line(auto& io, Of<Consume> auto& s) {
  const bool lags = s.mma_in_flight != 0;
  all(io, Named{s.pipeline, true}, Optional{" lag ", lags, s.mma_in_flight}, ":");
}

void line(auto& io, Of<Signal> auto& s) {
  all(io, s.flag, " by ", s.by);
}

void line(auto& io, Of<Wait> auto& s) {
  all(io, s.flag, " >= ", s.least);
}

void line(auto&, Of<ClusterSync> auto&) {}

void line(auto& io, Of<Roles> auto&) {
  all(io, ":");
}

void line(auto& io, Of<Role> auto& r) {
  all(io, "role ", r.name, " warps ", r.warps);
  all(io, Optional{" registers ", r.registers != 0, r.registers}, ":");
}
}  // namespace warploom::tile
