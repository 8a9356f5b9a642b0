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
#include "codegen/cpu_emitter.h"
#include "tile/print.h"

namespace warploom::codegen {
namespace {
// The tensors that a statement reads and those that it wholly overwrites; of its body, all of them
// when it has one. Writing a part of a tensor counts as both: what is not written stays as it was.
struct TensorUses {
  std::set<TensorId> reads;
  std::set<TensorId> writes;
};

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

void CpuEmitter::fused(const Body& body, const Run& run, std::span<const Run> later) {
  const std::span statements(body.begin() + static_cast<ptrdiff_t>(run.begin), run.end - run.begin);
  // Without need of rows tensors of several dimensions are walked from end to end, padding
  // included.
  const std::vector<int64_t>& shape = tensor(run.walked).shape;
  const size_t along = vector_dim_of(shape);
  const bool flat = run.shape.size() == 1;
  const bool rows = !flat && run.rows;
  const int64_t extent = flat   ? run.shape[0]
                         : rows ? shape[along]
                                : layout(run.walked).floats - lanes_;
  const bool single = extent == 1;
  const bool ragged =
      !single &&
      extent % lanes_ != 0;  // arrays end in room for a vector: the last may be a part of one
  // A reduction takes four partial results, so that it does not wait for itself.
  const int64_t vectors = extent / lanes_;
  const int64_t parts = run.reduced.empty() || ragged || run.scans ? 1
                        : vectors % 4 == 0                         ? 4
                        : vectors % 2 == 0                         ? 2
                                                                   : 1;
  const std::string v = fresh("v");
  const std::string u = fresh("u");
  const std::string w = fresh("w");
  std::map<TensorId, std::string> value;          // locals: of what tensors hold,
  std::map<const Statement*, std::string> total;  // and of what reductions and scans have passed
  std::map<TensorId, const Copy*>
      changed;  // what arrays lack; the copy that brought it, if one did
  known_.clear();

  // A copy from memory whose elements are apart or partly outside, or whose last vector is a part
  // of one: begin and end of what is there.
  std::map<const Copy*, std::string> parts_of_rows;
  for (const Statement& each : statements) out_.line("// {}", print(program_, each));
  out_.open("{{");
  for (const Statement& each : statements) {
    const auto* copy = each.as<Copy>();
    if (!copy || single || tensor(copy->src.tensor).scope != Scope::global) continue;
    const auto row = row_of(copy->src);
    if (!row || (row->box.empty() && row->step == 1 && !ragged)) continue;
    std::string range = fmt::format("0, {}", extent);
    if (!row->box.empty()) {
      const std::string box = fresh("box");
      out_.line("const wl::Box {} = {};", box, row->box);
      range = fmt::format("{0}.col_begin, {0}.col_end", box);
    }
    parts_of_rows[copy] = fmt::format("wl::load_row_at<{}>({}, {}, {}, {})", row->step,
                                      row->pointer, v, range, float_text(copy->fill));
  }
  const std::vector<Loop> loops = rows ? open_loops(shape, along, along) : std::vector<Loop>();
  for (const Statement& each : statements) {
    for (const TensorId id : uses_of(program_, each).reads)
      if (const Tensor& t = tensor(id); !single && t.scope == Scope::reg &&
                                        (rows ? t.shape[along] == 1 : element_count(t.shape) == 1))
        value[id] = local(fmt::format("wl::splat(*({}))", element(id, loops)), tensor(id).name);
    if (const auto* reduce = each.as<Reduce>()) {
      const std::string identity =
          fmt::format("wl::splat({})", float_text(reduction_of(reduce->op).identity));
      out_.line("wl::vf {}[] = {{{}}};", total[&each] = fresh(tensor(reduce->dst).name),
                fmt::join(std::vector(parts, identity), ", "));
    }
    if (const auto* scan = each.as<tile::Scan>())
      out_.line("wl::vf {} = wl::splat({});", total[&each] = fresh("before"),
                float_text(reduction_of(scan->op).identity));
  }
  if (rows && parts == 1 && vectors <= 8) out_.line("#pragma GCC unroll 8");
  if (parts > 1) {
    out_.open("for (long {0} = 0; {0} < {1}; {0} += {2} * wl::kLanes) {{", w, extent, parts);
    out_.line("#pragma GCC unroll {}", parts);
    out_.open("for (long {0} = 0; {0} < {1}; ++{0}) {{", u, parts);
    out_.line("const long {} = {} + {} * wl::kLanes;", v, w, u);
  } else if (run.reverse) {
    out_.open("for (long {0} = {1}; {0} >= 0; {0} -= wl::kLanes) {{", v,
              (extent - 1) / lanes_ * lanes_);
  } else if (!single) {
    out_.open("for (long {0} = 0; {0} < {1}; {0} += wl::kLanes) {{", v, extent);
  }
  const std::string step = single ? "" : " + " + v;
  const std::string ahead = run.reverse ? "wl::kLanes, true" : "wl::kLanes";

  const auto current = [&](TensorId id) {
    auto [found, added] = value.try_emplace(id);
    if (!added) return found->second;
    const auto memory = aliases_.find(id);
    const std::string from =
        (memory == aliases_.end() ? element(id, loops) : memory->second.pointer) + step;
    found->second = local((single ? "wl::splat(*" : "wl::load(") + from + ")", tensor(id).name);
    if (memory != aliases_.end() && std::exchange(memory->second.prefetch, false))
      out_.line("wl::prefetch<{}>({});", ahead, from);
    return found->second;
  };
  const Map* mapping = nullptr;
  const auto leaf = [&](const Value& one) {
    if (one.kind != Value::Kind::coordinate) return current(one.tensor);
    const bool walked =
        !single && static_cast<size_t>(one.axis) == vector_dim_of(tensor(mapping->dst).shape);
    Index at = one.shift;
    for (const Loop& loop : loops)
      if (static_cast<int>(loop.dim) == one.axis) at = at + Index::variable(loop.variable);
    if (walked) at = at + Index::variable(v);
    return local(fmt::format("wl::{}({})", walked ? "counted" : "splat", at.text()),
                 tensor(mapping->dst).name);
  };
  const auto set = [&](TensorId id, const std::string& to, const Copy* copy = nullptr) {
    const bool exact = copy && tensor(copy->src.tensor).dtype == tensor(id).dtype;
    value[id] = exact || !is_narrow(tensor(id).dtype)
                    ? to
                    : local(rounded(tensor(id).dtype, to), tensor(id).name);
    const bool memory = copy && tensor(copy->src.tensor).scope != Scope::reg && !single &&
                        !ragged && !parts_of_rows.contains(copy);
    changed[id] = memory ? copy : nullptr;
    aliases_.erase(id);
  };
  for (const Statement& each : statements) {
    if (const auto* fill = each.as<Fill>()) {
      set(fill->dst, fmt::format("wl::splat({})", float_text(fill->value)));
    } else if (const auto* map = each.as<Map>()) {
      mapping = map;
      set(map->dst, value_text(map->value, leaf, tensor(map->dst).name));
    } else if (const auto* reduce = each.as<Reduce>()) {
      const std::string part = fmt::format("{}[{}]", total[&each], parts > 1 ? u : "0");
      const Reduction& how = reduction_of(reduce->op);
      std::string what = current(reduce->src);
      if (ragged)
        what = fmt::format("wl::first({}, {} - {}, {})", what, extent, v, float_text(how.identity));
      out_.line("{0} = wl::{1}({2}, {0});", part, name_of(how.combine), what);
      aliases_.erase(reduce->dst);
    } else if (const auto* scan = each.as<Scan>()) {
      const Reduction& how = reduction_of(scan->op);
      const std::string before = total[&each];
      const std::string combine = fmt::format("wl::{}", name_of(how.combine));
      std::string what = current(scan->src);
      if (ragged && run.reverse)
        what = fmt::format("wl::first({}, {} - {}, {})", what, extent, v, float_text(how.identity));
      const std::string own = local(fmt::format("wl::prefixes<{}, {}>({}, wl::splat({}))", combine,
                                                run.reverse, what, float_text(how.identity)),
                                    "own");
      set(scan->dst,
          local(fmt::format("{}({}, {})", combine, before, own), tensor(scan->dst).name));
      out_.line("{0} = {1}({0}, wl::last<{2}>({3}, wl::lane_numbers{{}}));", before, combine,
                run.reverse, own);
    } else if (const auto* copy = each.as<Copy>()) {
      const Tensor& src = tensor(copy->src.tensor);
      const Tensor& dst = tensor(copy->dst.tensor);
      if (dst.scope != Scope::reg) {
        const bool streaming = dst.scope == Scope::global && copy->streaming &&
                               dst.dtype == Dtype::f32 && !single && !ragged;
        streams_ |= streaming;
        std::string what = current(copy->src.tensor);
        if (dst.scope == Scope::shared && src.dtype != dst.dtype) what = rounded(dst.dtype, what);
        if (single)
          what += "[0]";
        else if (ragged)
          what += fmt::format(", wl::min({} - {}, wl::kLanes)", extent, v);
        const char* how = single      ? "store_one"
                          : ragged    ? "store_first"
                          : streaming ? "stream"
                                      : "store";
        out_.line("wl::{}({}{}, {});", how, row_pointer(copy->dst), step, what);
      } else if (src.scope == Scope::reg) {
        set(copy->dst.tensor, current(copy->src.tensor), copy);
      } else if (const auto part = parts_of_rows.find(copy); part != parts_of_rows.end()) {
        set(copy->dst.tensor, local(part->second, dst.name), copy);
      } else {
        const std::string from = row_pointer(copy->src) + step;
        set(copy->dst.tensor,
            local(single ? "wl::splat(wl::load_one(" + from + "))" : "wl::load(" + from + ")",
                  dst.name),
            copy);
      }
    }
  }
  for (const auto& [id, copy] : changed) {
    const bool wanted = wanted_.at(statements.back().id)[id];
    if (wanted && copy && memory_serves(*copy, body, later))
      aliases_[id] = {row_pointer(copy->src), walks(copy->src)};
    else if (wanted)
      store(element(id, loops) + step, value[id], v, extent, !rows || along + 1 == shape.size());
  }
  // Of loops that read one stream the second, which finds it in the cache and has time, asks for
  // what later turns will read.
  for (const Statement& each : statements)
    if (const auto* copy = each.as<Copy>();
        copy && !single && !parts_of_rows.contains(copy) && walks(copy->src))
      if (const auto alias = aliases_.find(copy->dst.tensor);
          alias == aliases_.end() || !alias->second.prefetch || changed[copy->dst.tensor] != copy)
        out_.line("wl::prefetch<{}>({}{});", ahead, row_pointer(copy->src), step);
  if (parts > 1) out_.close();
  if (!single) out_.close();
  // A single element is kept in all lanes of its vector, so that the vector that a map loads next
  // was written as one.
  for (const Statement& each : statements)
    if (const auto* reduce = each.as<Reduce>())
      out_.line("wl::{}({}, {}{});", rows ? "store_one" : "store", element(reduce->dst, loops),
                rounded(tensor(reduce->dst).dtype,
                        fmt::format("wl::splat(wl::across<wl::{}>({}))",
                                    name_of(reduction_of(reduce->op).combine), total[&each])),
                rows ? "[0]" : "");
  for (size_t i = 0; i <= loops.size(); ++i) out_.close();
}
}  // namespace warploom::codegen
