// Loop fusion: consecutive statements over one shape become one loop over vectors, within loops
// over rows where they need them.
//
//   copy X -> x;  map x = exp(x - high);  reduce sum: x -> total;  copy x -> row
//   →  for (v …) { const vf x_1 = load(X + v), x_2 = exp(x_1 - high); sum[u] = add(x_2, sum[u]);
//   store(row + v, x_2); }
//
// In the loop a tensor's value is a local vector: loaded where it is first read, stored to its
// array only where a later statement wants it. A tensor just copied from memory that nobody writes
// needs no array at all: later loops read that memory again, from the cache. Runs over single
// elements are straight lines of code.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>
#include "codegen/cpu_emitter.h"
#include "codegen/terms.h"
#include "tile/print.h"
#include "tile/program.h"

namespace warploom::codegen {
TensorUses uses_of(const Program& program, const Statement& statement) {
  TensorUses uses;
  for_statements(statement, [&](const Statement& each) {
    for (const TensorUse& use : tile::uses_of(each)) {
      const bool whole = !use.tile || use.tile->extent == program.tensor(use.tensor).shape;
      if (use.read || !whole) uses.reads.insert(use.tensor);
      if (use.written) uses.writes.insert(use.tensor);
    }
  });
  return uses;
}

namespace {
bool holds_statements(const Statement& statement) {
  bool holds = false;
  for_bodies(statement, [&](const Body&) { holds = true; });
  return holds;
}

void unite(Wanted& to, const Wanted& more) {
  std::transform(to.begin(), to.end(), more.begin(), to.begin(), std::logical_or<>());
}

// Which tensors are wanted behind each statement, in two passes. The first finds what a loop or
// branch reads before it overwrites it. Its end wants that, since another turn may follow, beside
// what is wanted behind it; which the second pass goes through, backwards.
class WantedPass {
 public:
  explicit WantedPass(const Program& program) : program_(program) {}

  std::map<StatementId, Wanted> run() {
    read_first(program_.body);
    walk(program_.body, none());
    return std::move(behind_);
  }

 private:
  Wanted none() const { return Wanted(program_.tensors.size()); }

  void pass(const Statement& simple, Wanted& wanted) const {
    const TensorUses uses = uses_of(program_, simple);
    for (const TensorId id : uses.writes) wanted[id] = false;
    for (const TensorId id : uses.reads) wanted[id] = true;
  }

  // What a body reads before it overwrites it.
  Wanted read_first(const Body& body) {
    Wanted wanted = none();
    for (size_t i = body.size(); i-- > 0;) {
      if (!holds_statements(body[i])) {
        pass(body[i], wanted);
        continue;
      }
      Wanted& inside = read_first_.try_emplace(body[i].id, none()).first->second;
      for_bodies(body[i], [&](const Body& inner) { unite(inside, read_first(inner)); });
      unite(wanted, inside);
    }
    return wanted;
  }

  void walk(const Body& body, Wanted wanted) {
    for (size_t i = body.size(); i-- > 0;) {
      behind_[body[i].id] = wanted;
      if (!holds_statements(body[i])) {
        pass(body[i], wanted);
        continue;
      }
      unite(wanted, read_first_.at(body[i].id));
      for_bodies(body[i], [&](const Body& inner) { walk(inner, wanted); });
    }
  }

  const Program& program_;
  std::map<StatementId, Wanted> read_first_;  // of statements that hold others
  std::map<StatementId, Wanted> behind_;
};
}  // namespace

std::map<StatementId, Wanted> wanted_behind(const Program& program) {
  return WantedPass(program).run();
}

// Takes the statement into the run, if it may run in the same loop as what is there.
bool CpuEmitter::joins(const Statement& statement, Run& run) const {
  if (in_integers(program_, statement)) return false;  // loops of their own
  Run next = run;
  // A register tensor whose elements the loop walks. Those with at most one dimension above 1 lie
  // one after another: what counts is how many there are.
  const auto takes = [&](TensorId id) {
    std::vector<int64_t> shape = tensor(id).shape;
    if (const int64_t count = element_count(shape); std::ranges::find(shape, count) != shape.end())
      shape = {count};
    const bool same = tensor(id).scope == Scope::reg &&
                      (next.shape.empty() || next.shape == shape) && !run.reduced.contains(id);
    next.shape = std::move(shape);
    next.walked = id;
    return same;
  };
  const auto takes_along = [&](const auto& node) {  // what it combines lies along vectors
    const std::vector<int64_t>& shape = tensor(node.src).shape;
    const auto axis = static_cast<size_t>(node.axis);
    return takes(node.src) && axis == vector_dim_of(shape) && shape[axis] > 1;
  };
  const auto side = [&](const Tile& tile, bool read = false) {
    if (tensor(tile.tensor).scope != Scope::reg)
      return !row_pointer(tile).empty() || (read && row_of(tile));
    return tile.extent == tensor(tile.tensor).shape && takes(tile.tensor);
  };
  bool fits = false;
  if (const auto* fill = statement.as<Fill>()) {
    fits = takes(fill->dst);
  } else if (const auto* map = statement.as<Map>()) {
    fits = takes(map->dst);
    next.rows |= has_coordinates(map->value);
    for (const TensorId id : uses_of(program_, statement).reads) {
      fits = fits && !run.reduced.contains(id);
      next.rows |=
          tensor(id).shape != tensor(map->dst).shape && element_count(tensor(id).shape) > 1;
    }
  } else if (const auto* reduce = statement.as<Reduce>()) {
    fits = takes_along(*reduce) && next.reduced.insert(reduce->dst).second;
    next.rows = true;
  } else if (const auto* scan = statement.as<Scan>()) {
    fits = takes_along(*scan) && takes(scan->dst) && (!run.scans || run.reverse == scan->reverse);
    next.rows = next.scans = true;
    next.reverse = scan->reverse;
  } else if (const auto* copy = statement.as<Copy>()) {
    const TensorId from = copy->src.tensor;
    const TensorId to = copy->dst.tensor;
    const bool reads = tensor(from).scope != Scope::reg;
    const bool writes = tensor(to).scope != Scope::reg;
    fits = !copy->combine && !(reads && writes) && side(copy->src, true) && side(copy->dst);
    if (reads || writes) fits = fits && next.shape.size() == 1;
    // Between turns of the loop, what was stored must not be met again.
    if (reads) {
      fits = fits && !run.written.contains(from);
      next.read.insert(from);
    }
    if (writes) fits = fits && !run.read.contains(to) && next.written.insert(to).second;
  }
  if (!fits) return false;
  ++next.end;
  run = std::move(next);
  return true;
}

std::vector<CpuEmitter::Run> CpuEmitter::runs_of(const Body& body) const {
  std::vector<Run> runs;
  for (size_t i = 0; i < body.size(); i = runs.back().end) {
    Run run;
    run.begin = run.end = i;
    while (run.end < body.size() && joins(body[run.end], run)) {}
    run.end = std::max(run.end, i + 1);
    runs.push_back(std::move(run));
  }
  return runs;
}

// Whether runs alone read what a copy from memory put into the tensor, until it is overwritten:
// they can read the memory.
bool CpuEmitter::memory_serves(const Copy& copy, const Body& body,
                               std::span<const Run> later) const {
  const TensorId id = copy.dst.tensor;
  const TensorId memory = copy.src.tensor;
  if (is_narrow(tensor(id).dtype) && tensor(memory).dtype != tensor(id).dtype) return false;
  for (const Statement& each : body)
    if (uses_of(program_, each).writes.contains(memory)) return false;
  for (const Run& run : later)
    for (size_t i = run.begin; i < run.end; ++i) {
      const TensorUses uses = uses_of(program_, body[i]);
      if (uses.writes.contains(id)) return !run.shape.empty();
      if (uses.reads.contains(id) && run.shape.size() != 1) return false;
    }
  return !wanted_.at(body.back().id)[id];
}

// A row of a global tensor that the innermost loop walks through.
bool CpuEmitter::walks(const Tile& tile) const {
  return tensor(tile.tensor).scope == Scope::global && !loops_.empty() &&
         address(tile).depends_on(loops_.back());
}
}  // namespace warploom::codegen
