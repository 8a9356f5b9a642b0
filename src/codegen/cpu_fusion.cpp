// Loop fusion: consecutive statements over one extent become one loop over vectors.
//
//   copy X -> x;  map x = exp(x - high);  reduce sum: x -> total;  copy x -> row
//   →  for (v …) { const vf x_1 = load(X + v), x_2 = exp(x_1 - high); sum[u] = add(x_2, sum[u]); store(row + v, x_2); }
//
// In the loop a tensor's value is a local vector: loaded where it is first read, stored to its array only where a later statement
// wants it. A tensor just copied from memory that nobody writes needs no array at all: later loops read that memory again, from
// the cache. Runs over single elements are straight lines of code.
#include "codegen/cpu_emitter.h"
#include "tile/print.h"
namespace warploom::codegen {
using tile::Scope;
using tile::Statement;
using tile::TensorId;
namespace {
// The tensors that a statement reads and those that it wholly overwrites; of its body, all of them when it has one. Writing a part of
// a tensor counts as both: what is not written stays as it was.
struct TensorUses {
  std::vector<TensorId> reads, writes;
};

TensorUses uses_of(const tile::Program& program, const Statement& statement) {
  TensorUses uses;
  for (const tile::TensorUse& use : tile::uses_of(statement)) {
    const bool whole = !use.tile || use.tile->extent == program.tensor(use.tensor).shape;
    if (use.read || !whole) uses.reads.push_back(use.tensor);
    if (use.written) uses.writes.push_back(use.tensor);
  }
  for_bodies(statement, [&](const tile::Body& body) {
    for (const Statement& each : body) {
      const TensorUses inner = uses_of(program, each);
      uses.reads.insert(uses.reads.end(), inner.reads.begin(), inner.reads.end());
      uses.writes.insert(uses.writes.end(), inner.writes.begin(), inner.writes.end());
    }
  });
  return uses;
}

// Backwards; a loop's body twice, the second time with what its own next turn wants.
void walk(const tile::Program& program, const tile::Body& body, Wanted& wanted, std::map<const Statement*, Wanted>& behind) {
  for (std::size_t i = body.size(); i-- > 0;) {
    behind[&body[i]] = wanted;
    bool holds = false;
    for_bodies(body[i], [&](const tile::Body& inner) {
      holds = true;
      for (int turn = 0; turn < 2; ++turn) {
        Wanted before = wanted;
        walk(program, inner, before, behind);
        std::transform(wanted.begin(), wanted.end(), before.begin(), wanted.begin(), std::logical_or<>());
      }
    });
    if (holds) continue;
    const TensorUses uses = uses_of(program, body[i]);
    for (const TensorId id : uses.writes) wanted[static_cast<std::size_t>(id)] = false;
    for (const TensorId id : uses.reads) wanted[static_cast<std::size_t>(id)] = true;
  }
}
}  // namespace
std::map<const Statement*, Wanted> wanted_behind(const tile::Program& program) {
  std::map<const Statement*, Wanted> behind;
  Wanted wanted(program.tensors.size());
  walk(program, program.body, wanted, behind);
  return behind;
}

// The length of a register tensor with at most one dimension above 1, whose elements therefore lie one after another.
std::int64_t CpuEmitter::flat_extent(TensorId id) const {
  const tile::Tensor& t = tensor(id);
  const std::int64_t count = tile::element_count(t.shape);
  const bool flat = t.scope == Scope::reg && std::find(t.shape.begin(), t.shape.end(), count) != t.shape.end();
  return flat ? count : 0;
}

// Takes the statement into the run, if it may run in the same loop as what is there.
bool CpuEmitter::joins(const Statement& statement, Run& run) const {
  std::int64_t extent = 0;
  const auto takes = [&](TensorId id) {  // a register tensor whose elements the loop walks
    const std::int64_t length = flat_extent(id);
    const bool same = length > 0 && (extent == 0 || length == extent) && !run.reduced.contains(id);
    extent = length;
    return same && (run.extent == 0 || length == run.extent);  // arrays end in room for a vector: the last may be a part of one
  };
  const auto side = [&](const tile::Tile& tile, bool read = false) {
    if (tensor(tile.tensor).scope != Scope::reg) return !row_pointer(tile).empty() || (read && row_of(tile));
    return tile.extent == tensor(tile.tensor).shape && takes(tile.tensor);
  };
  Run next = run;
  bool fits = false;
  if (const auto* fill = std::get_if<tile::Fill>(&statement.node)) {
    fits = takes(fill->dst);
  } else if (const auto* map = std::get_if<tile::Map>(&statement.node)) {
    fits = takes(map->dst);
    for (const TensorId id : uses_of(program_, statement).reads)
      fits = fits && (flat_extent(id) == 1 ? !run.reduced.contains(id) : tensor(id).shape == tensor(map->dst).shape);
  } else if (const auto* reduce = std::get_if<tile::Reduce>(&statement.node)) {
    fits = takes(reduce->src) && extent > 1 && extent % lanes_ == 0 && flat_extent(reduce->dst) == 1 &&
           next.reduced.insert(reduce->dst).second;
  } else if (const auto* copy = std::get_if<tile::Copy>(&statement.node)) {
    const TensorId from = copy->src.tensor, to = copy->dst.tensor;
    const bool reads = tensor(from).scope != Scope::reg, writes = tensor(to).scope != Scope::reg;
    fits = !copy->combine && !(reads && writes) && side(copy->src, true) && side(copy->dst);
    // Between turns of the loop, what was stored must not be met again.
    if (reads) fits = fits && !run.written.contains(from), next.read.insert(from);
    if (writes) fits = fits && !run.read.contains(to) && next.written.insert(to).second;
  }
  if (!fits) return false;
  next.extent = extent;
  ++next.end;
  run = std::move(next);
  return true;
}

std::vector<CpuEmitter::Run> CpuEmitter::runs_of(const tile::Body& body) const {
  std::vector<Run> runs;
  for (std::size_t i = 0; i < body.size(); i = runs.back().end) {
    Run run;
    run.begin = run.end = i;
    while (run.end < body.size() && joins(body[run.end], run)) {}
    run.end = std::max(run.end, i + 1);
    runs.push_back(std::move(run));
  }
  return runs;
}

// Whether runs alone read what a copy from memory put into the tensor, until it is overwritten: they can read the memory.
bool CpuEmitter::memory_serves(const tile::Copy& copy, const tile::Body& body, std::span<const Run> later) const {
  const TensorId id = copy.dst.tensor, memory = copy.src.tensor;
  if (is_narrow(tensor(id).dtype) && tensor(memory).dtype != tensor(id).dtype) return false;
  const auto has = [](const std::vector<TensorId>& list, TensorId one) {
    return std::find(list.begin(), list.end(), one) != list.end();
  };
  for (const Statement& each : body)
    if (has(uses_of(program_, each).writes, memory)) return false;
  for (const Run& run : later)
    for (std::size_t i = run.begin; i < run.end; ++i) {
      const TensorUses uses = uses_of(program_, body[i]);
      if (has(uses.writes, id)) return run.extent > 0;
      if (has(uses.reads, id) && run.extent == 0) return false;
    }
  return !wanted_.at(&body.back())[static_cast<std::size_t>(id)];
}

// A row of a global tensor that the innermost loop walks through.
bool CpuEmitter::walks(const tile::Tile& tile) const {
  return tensor(tile.tensor).scope == Scope::global && !loops_.empty() && address(tile).depends_on(loops_.back());
}

void CpuEmitter::fused(const tile::Body& body, const Run& run, std::span<const Run> later) {
  const std::span statements(body.begin() + static_cast<std::ptrdiff_t>(run.begin), run.end - run.begin);
  const bool single = run.extent == 1, ragged = !single && run.extent % lanes_ != 0;
  // A reduction takes four partial results, so that it does not wait for itself.
  const std::int64_t vectors = run.extent / lanes_;
  const std::int64_t parts = run.reduced.empty() ? 1 : vectors % 4 == 0 ? 4 : vectors % 2 == 0 ? 2 : 1;
  const std::string v = fresh("v"), u = fresh("u"), w = fresh("w");
  std::map<TensorId, std::string> value, total;   // locals: of what tensors hold, and of partial results
  std::map<TensorId, const tile::Copy*> changed;  // what arrays lack; the copy that brought it, if one did
  std::map<std::string, std::string> known;
  const auto stem = [&](TensorId id) { return tensor(id).name; };

  // A copy from memory whose elements are apart or partly outside, or whose last vector is a part of one: begin and end of what is there.
  std::map<const tile::Copy*, std::string> parts_of_rows;
  for (const Statement& each : statements) out_.line("// {}", tile::print(program_, each));
  out_.open("{{");
  for (const Statement& each : statements) {
    const auto* copy = std::get_if<tile::Copy>(&each.node);
    if (!copy || single || tensor(copy->src.tensor).scope != Scope::global) continue;
    const auto row = row_of(copy->src);
    if (!row || (row->box.empty() && row->step == 1 && !ragged)) continue;
    std::string range = fmt::format("0, {}", run.extent);
    if (!row->box.empty()) {
      const std::string box = fresh("box");
      out_.line("const wl::Box {} = {};", box, row->box);
      range = fmt::format("{0}.col_begin, {0}.col_end", box);
    }
    parts_of_rows[copy] =
        fmt::format("wl::load_row_at<{}>({}, {}, {}, {})", row->step, row->pointer, v, range, float_text(copy->fill));
  }
  for (const Statement& each : statements) {
    for (const TensorId id : uses_of(program_, each).reads)
      if (!single && flat_extent(id) == 1) value[id] = local(fmt::format("wl::splat(*{})", name(id)), stem(id), known);
    if (const auto* reduce = std::get_if<tile::Reduce>(&each.node)) {
      const std::string identity = fmt::format("wl::splat({})", float_text(reduction_of(reduce->op).identity));
      out_.line("wl::vf {}[] = {{{}}};", total[reduce->dst] = fresh(stem(reduce->dst)),
                fmt::join(std::vector(static_cast<std::size_t>(parts), identity), ", "));
    }
  }
  if (parts > 1) {
    out_.open("for (long {0} = 0; {0} < {1}; {0} += {2} * wl::kLanes) {{", w, run.extent, parts);
    out_.line("#pragma GCC unroll {}", parts);
    out_.open("for (long {0} = 0; {0} < {1}; ++{0}) {{", u, parts);
    out_.line("const long {} = {} + {} * wl::kLanes;", v, w, u);
  } else if (!single) {
    out_.open("for (long {0} = 0; {0} < {1}; {0} += wl::kLanes) {{", v, run.extent);
  }
  const std::string step = single ? "" : " + " + v;

  const auto current = [&](TensorId id) {
    auto [found, added] = value.try_emplace(id);
    if (!added) return found->second;
    const auto memory = aliases_.find(id);
    const std::string from = (memory == aliases_.end() ? name(id) : memory->second.pointer) + step;
    found->second = local((single ? "wl::splat(*" : "wl::load(") + from + ")", stem(id), known);
    if (memory != aliases_.end() && std::exchange(memory->second.prefetch, false))
      out_.line("wl::prefetch<wl::kLanes>({});", from);
    return found->second;
  };
  const tile::Map* mapping = nullptr;
  const auto leaf = [&](const tile::Value& one) {
    if (one.kind != tile::Value::Kind::coordinate) return current(one.tensor);
    const bool walked = !single && tensor(mapping->dst).shape[static_cast<std::size_t>(one.axis)] > 1;
    const std::string at = walked ? (one.shift + tile::Index::variable(v)).text() : one.shift.text();
    return local(fmt::format("wl::{}({})", walked ? "counted" : "splat", at), stem(mapping->dst), known);
  };
  const auto set = [&](TensorId id, const std::string& to, const tile::Copy* copy = nullptr) {
    const bool exact = copy && tensor(copy->src.tensor).dtype == tensor(id).dtype;
    value[id] = exact || !is_narrow(tensor(id).dtype) ? to : local(rounded(tensor(id).dtype, to), stem(id), known);
    const bool memory =
        copy && tensor(copy->src.tensor).scope != Scope::reg && !single && !ragged && !parts_of_rows.contains(copy);
    changed[id] = memory ? copy : nullptr;
    aliases_.erase(id);
  };
  for (const Statement& each : statements) {
    if (const auto* fill = std::get_if<tile::Fill>(&each.node)) {
      set(fill->dst, fmt::format("wl::splat({})", float_text(fill->value)));
    } else if (const auto* map = std::get_if<tile::Map>(&each.node)) {
      mapping = map;
      set(map->dst, value_text(map->value, leaf, known, stem(map->dst)));
    } else if (const auto* reduce = std::get_if<tile::Reduce>(&each.node)) {
      const std::string part = fmt::format("{}[{}]", total[reduce->dst], parts > 1 ? u : "0");
      out_.line("{0} = {1}({2}, {0});", part, reduction_of(reduce->op).combine, current(reduce->src));
    } else if (const auto* copy = std::get_if<tile::Copy>(&each.node)) {
      const tile::Tensor &src = tensor(copy->src.tensor), &dst = tensor(copy->dst.tensor);
      if (dst.scope != Scope::reg) {
        const bool streaming = dst.scope == Scope::global && copy->streaming && dst.dtype == Dtype::f32 && !single && !ragged;
        streams_ |= streaming;
        std::string what = current(copy->src.tensor);
        if (dst.scope == Scope::shared && src.dtype != dst.dtype) what = rounded(dst.dtype, what);
        out_.line("wl::{}({}{}, {}{});",
                  single      ? "store_one"
                  : ragged    ? "store_first"
                  : streaming ? "stream"
                              : "store",
                  row_pointer(copy->dst), step, what,
                  single   ? "[0]"
                  : ragged ? fmt::format(", wl::min({} - {}, wl::kLanes)", run.extent, v)
                           : "");
      } else if (src.scope == Scope::reg) {
        set(copy->dst.tensor, current(copy->src.tensor), copy);
      } else if (const auto part = parts_of_rows.find(copy); part != parts_of_rows.end()) {
        set(copy->dst.tensor, local(part->second, stem(copy->dst.tensor), known), copy);
      } else {
        const std::string from = row_pointer(copy->src) + step;
        set(copy->dst.tensor,
            local(single ? "wl::splat(wl::load_one(" + from + "))" : "wl::load(" + from + ")", stem(copy->dst.tensor), known),
            copy);
      }
    }
  }
  for (const auto& [id, copy] : changed) {
    const bool wanted = wanted_.at(&statements.back())[static_cast<std::size_t>(id)];
    if (wanted && copy && memory_serves(*copy, body, later)) aliases_[id] = {row_pointer(copy->src), walks(copy->src)};
    else if (wanted) out_.line("wl::store({}{}, {});", name(id), step, value[id]);
  }
  // Of loops that read one stream the second, which finds it in the cache and has time, asks for what later turns will read.
  for (const Statement& each : statements)
    if (const auto* copy = std::get_if<tile::Copy>(&each.node);
        copy && !single && !parts_of_rows.contains(copy) && walks(copy->src))
      if (const auto alias = aliases_.find(copy->dst.tensor);
          alias == aliases_.end() || !alias->second.prefetch || changed[copy->dst.tensor] != copy)
        out_.line("wl::prefetch<wl::kLanes>({}{});", row_pointer(copy->src), step);
  if (parts > 1) out_.close();
  if (!single) out_.close();
  for (const Statement& each : statements)
    if (const auto* reduce = std::get_if<tile::Reduce>(&each.node))
      out_.line("wl::store({}, {});", name(reduce->dst),
                rounded(tensor(reduce->dst).dtype,
                        fmt::format("wl::splat({}({}))", reduction_of(reduce->op).horizontal, total[reduce->dst])));
  out_.close();
}
}  // namespace warploom::codegen
