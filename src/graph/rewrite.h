// Rewrites: a graph as another one that computes the same in exact arithmetic, where which of the
// two is better depends on sizes, the target and the track, so that a search has to choose.
//
// What is always better is done without asking: what depends on constants alone is folded
// (simplify), what is computed twice is computed once (common_subexpressions.h), what nobody reads
// is dropped, powers with whole exponents are products (pointwise.cpp), means are sums times 1/n
// (decompose). The kinds of rewrites.def are choices. Each is a rule at the node that makes a
// tensor, by which the rewrite is known:
//
//   y = (x·a)·b         x [4096,512], a [512,512], b [512,8]
//   "products_right y"  y = x·(a·b): 2·512·512·8 + 2·4096·512·8 operations instead of
//                       2·4096·512·512 + 2·4096·512·8; of constants a and b, a·b is computed once
//                       before the calls
//
//   const auto offers = rewrites_of(graph, Track::fp32);
//   offers[0].sentence                    // "multiply a by b first, and x by that (37.7 M
//                                         // operations instead of 2180 M): …"
//   WARPLOOM_TRY(graph, rewrite(graph, offers[0].rewrite, Track::fp32));
//
// Legality. A rule refuses what would compute something else, and what the track does not allow
// for: its bounds are taken of the graph that was given (verify/tolerance.h), to the first order
// (reference.h, Magnitude), so a rewrite must not add terms that are larger than those of which the
// bound is made. x·(a + b) as x·a + x·b does so where a and b are given and cancel, and is refused
// but on the tolerance track; where one of them is computed, its own rounding is in the bound
// already. Numbers of fp16 that grow before they are scaled down may overflow, and are refused.
//
// Errors: plan-invalid for a text that is no rewrite, or a node that it does not fit;
// schedule-illegal with the constraints where it is refused.
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>
#include "base/error.h"
#include "graph/graph.h"
#include "graph/track.h"

namespace warploom::graph {
enum class RewriteKind : uint8_t {
#define WARPLOOM_REWRITE(name, words, gain) name,
#include "graph/rewrites.def"
};

struct RewriteRow {
  std::string_view name;
  std::string_view words;  // with places for tensors
  std::string_view gain;
};

inline constexpr RewriteRow kRewriteRows[] = {
#define WARPLOOM_REWRITE(name, words, gain) {#name, words, gain},
#include "graph/rewrites.def"
};

struct Rewrite {
  RewriteKind kind = RewriteKind::products_right;
  std::string at;  // the tensor that the node makes; it keeps its name

  std::string text() const;  // "products_right y"

  friend bool operator==(const Rewrite&, const Rewrite&) = default;
};

Result<Rewrite> rewrite_from_text(const std::string& text);

// What a call does beyond what is the same in every call, which is computed before.
struct NodeWork {
  double operations = 0;  // two a multiply-add; of a division eight
  double products = 0;    // those of products and convolutions alone
  // That products, reductions and movements read and write; and what makes a product's operand
  // element by element.
  double bytes = 0;

  NodeWork& operator+=(const NodeWork& more) {
    operations += more.operations;
    products += more.products;
    bytes += more.bytes;
    return *this;
  }
};

// Of a graph of primitives. `known`: inputs that hold the same in every call.
NodeWork work_of(const Graph& graph, const std::set<std::string>& known = {});

// A constraint that fails.
struct FailedNeed {
  std::string expected;
  std::string found;
};

struct RewriteOffer {
  Rewrite rewrite;
  std::string sentence;         // what it does, and what that is expected to gain
  NodeWork before;              // of the nodes that go
  NodeWork after;               // of those that come
  std::vector<FailedNeed> why;  // it is refused; none: it is legal
};

// Of a graph of primitives, in the order of its nodes, legal ones and refused ones.
std::vector<RewriteOffer> rewrites_of(const Graph& graph, Track track,
                                      const std::set<std::string>& known = {});

// The graph with one of them carried out.
Result<Graph> rewrite(Graph graph, const Rewrite& rewrite, Track track);

// The same of several, one after another.
Result<Graph> rewrite(Graph graph, const std::vector<Rewrite>& rewrites, Track track);
}  // namespace warploom::graph
