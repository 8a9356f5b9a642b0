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
#include <map>
#include <span>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "codegen/cpu_emitter.h"
#include "codegen/terms.h"
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
  for (size_t i = 0; i < to.size(); ++i)
    to[i] = to[i] || more[i];
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
    for (const TensorId id : uses.writes)
      wanted[id] = false;
    for (const TensorId id : uses.reads)
      wanted[id] = true;
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

// Whether a statement may run in the same loop as those of a run, and what the run is with it.
class CpuEmitter::Joining {
 public:
  Joining(const CpuEmitter& emitter, const Run& run) : out_(emitter), run_(run), next_(run) {}

  bool fits(const Statement& statement) {
    if (const auto* fill = statement.as<Fill>()) return takes(fill->dst);
    if (const auto* map = statement.as<Map>()) return fits(statement, *map);
    if (const auto* reduce = statement.as<Reduce>()) return fits(*reduce);
    if (const auto* scan = statement.as<Scan>()) return fits(*scan);
    if (const auto* copy = statement.as<Copy>()) return fits(*copy);
    return false;
  }

  Run joined() {
    ++next_.end;
    return std::move(next_);
  }

 private:
  const Tensor& tensor(TensorId id) const { return out_.tensor(id); }

  bool in_registers(const Tile& tile) const { return tensor(tile.tensor).scope == Scope::reg; }

  // A register tensor whose elements the loop walks. Those with at most one dimension above 1 lie
  // one after another: what counts is how many there are.
  bool takes(TensorId id) {
    auto shape = tensor(id).shape;
    const int64_t count = element_count(shape);
    if (std::ranges::find(shape, count) != shape.end()) shape = {count};
    const bool same_shape = next_.shape.empty() || next_.shape == shape;
    const bool same = tensor(id).scope == Scope::reg && same_shape && !run_.reduced.contains(id);
    next_.shape = std::move(shape);
    next_.walked = id;
    return same;
  }

  // What a reduction or scan combines must lie along vectors.
  bool takes_along(TensorId src, int dim) {
    const auto& shape = tensor(src).shape;
    const auto axis = as_size(dim);
    return takes(src) && axis == vector_dim_of(shape) && shape[axis] > 1;
  }

  bool takes_side(const Tile& tile, bool read) {
    if (!in_registers(tile)) return !out_.row_pointer(tile).empty() || (read && out_.row_of(tile));
    return tile.extent == tensor(tile.tensor).shape && takes(tile.tensor);
  }

  bool fits(const Statement& statement, const Map& map) {
    if (!takes(map.dst)) return false;
    next_.rows |= has_coordinates(map.value);
    for (const TensorId id : uses_of(out_.program_, statement).reads) {
      if (run_.reduced.contains(id)) return false;
      const auto& shape = tensor(id).shape;
      next_.rows |= shape != tensor(map.dst).shape && element_count(shape) > 1;
    }
    return true;
  }

  bool fits(const Reduce& reduce) {
    next_.rows = true;
    return takes_along(reduce.src, reduce.axis) && next_.reduced.insert(reduce.dst).second;
  }

  bool fits(const Scan& scan) {
    next_.rows = true;
    next_.scans = true;
    next_.reverse = scan.reverse;
    if (!takes_along(scan.src, scan.axis) || !takes(scan.dst)) return false;
    return !run_.scans || run_.reverse == scan.reverse;
  }

  bool fits(const Copy& copy) {
    const TensorId from = copy.src.tensor;
    const TensorId to = copy.dst.tensor;
    const bool reads = !in_registers(copy.src);
    const bool writes = !in_registers(copy.dst);
    if (copy.combine || (reads && writes)) return false;
    if (!takes_side(copy.src, true) || !takes_side(copy.dst, false)) return false;
    if ((reads || writes) && next_.shape.size() != 1) return false;
    // Between turns of the loop, what was stored must not be met again; storing where the same turn
    // has read meets nothing.
    if (reads && run_.written.contains(from)) return false;
    if (reads) note_read(copy.src);
    if (!writes) return true;
    const auto read = run_.read.find(to);
    const bool apart = read == run_.read.end() || read->second == out_.row_pointer(copy.dst);
    return apart && next_.written.insert(to).second;
  }

  void note_read(const Tile& tile) {
    const std::string where = out_.row_pointer(tile);
    const auto [known, added] = next_.read.try_emplace(tile.tensor, where);
    if (known->second != where) known->second.clear();
  }

  const CpuEmitter& out_;
  const Run& run_;
  Run next_;
};

// Takes the statement into the run, if it may run in the same loop as what is there.
bool CpuEmitter::joins(const Statement& statement, Run& run) const {
  if (in_integers(program_, statement)) return false;  // loops of their own
  Joining joining(*this, run);
  if (!joining.fits(statement)) return false;
  run = joining.joined();
  return true;
}

std::vector<CpuEmitter::Run> CpuEmitter::runs_of(const Body& body) const {
  std::vector<Run> runs;
  for (size_t i = 0; i < body.size(); i = runs.back().end) {
    Run run;
    run.begin = run.end = i;
    while (run.end < body.size() && !begins_product(body, run.end) && joins(body[run.end], run)) {}
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
  const Dtype dtype = tensor(id).dtype;
  if (is_narrow(dtype) && tensor(memory).dtype != dtype) return false;
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
  if (tensor(tile.tensor).scope != Scope::global || loops_.empty()) return false;
  return address(tile).depends_on(loops_.back().variable);
}
}  // namespace warploom::codegen
