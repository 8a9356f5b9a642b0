#include "synth/registers.h"
#include "synth/exchange.h"
#include "synth/shared.h"
#include "tile/print.h"
namespace warploom::synth {
namespace {
using layout::TvLayout;
using namespace tile;

// The layout of the same bits as elements of another width, along the last dimension; nothing where an element would be torn apart.
std::optional<TvLayout> rescaled(const TvLayout& layout, int from, int to, const std::vector<std::int64_t>& tile) {
  TvLayout out = coalesce(layout);
  out.tile = tile;
  layout::Coord unit(tile.size(), 0);
  unit.back() = 1;
  const std::int64_t ratio = std::max(from, to) / std::min(from, to);
  if (from < to) {
    if (out.value.empty() || out.value[0].step != unit || out.value[0].extent % ratio) return std::nullopt;
    out.value[0].extent /= ratio, out.value[0].step.back() = ratio;
  }
  for (auto* modes : {&out.thread, &out.value})
    for (layout::TvMode& mode : *modes) {
      if (from < to && mode.step.back() % ratio) return std::nullopt;
      mode.step.back() = from < to ? mode.step.back() / ratio : mode.step.back() * ratio;
    }
  if (from >= to) out.value.insert(out.value.begin(), {ratio, unit});
  return out;
}

class Solver {
 public:
  Solver(const Program& program, const std::vector<Site>& sites, const Bounds& bounds, const target::Capabilities& capabilities)
      : program_(program), sites_(sites), bounds_(bounds), capabilities_(capabilities) {}

  Result<std::vector<RegisterSolution>> run() {
    search({});
    if (!found_.empty()) return std::move(found_);
    if (first_error_ && first_error_->code == ErrorCode::kLayout) first_error_->code = ErrorCode::kNoLayout;
    if (first_error_) return fail(*first_error_);
    return fail({ErrorCode::kNoLayout, "no register layouts fit the program", program_.name, "a solution",
                 fmt::format("none within {} nodes", kNodeBudget), "change the tile shape or the number of warps"});
  }

 private:
  using State = RegisterSolution;
  static constexpr int kNodeBudget = 2000;

  // Records a layout a statement asks for; false when the tensor already has another.
  bool want(State& state, TensorId tensor, const TvLayout& layout, const Statement& by, bool& changed) {
    const auto [place, fresh] = state.registers.try_emplace(tensor, layout);
    if (fresh) {
      state.set_by[tensor] = &by;
      changed = true;
      return true;
    }
    if (place->second == layout || coalesce(place->second) == coalesce(layout)) return true;
    conflict(tensor, *state.set_by[tensor], by, place->second, layout);
    return false;
  }

  void conflict(TensorId tensor, const Statement& first, const Statement& second, const TvLayout& have, const TvLayout& asked) {
    if (first_error_) return;
    first_error_ =
        Error{ErrorCode::kNoLayout,
              fmt::format("two statements ask for different layouts of register tensor '{}'", program_.tensor(tensor).name),
              place_of(second),
              fmt::format("{} ({}: {})", to_string(coalesce(have)), place_of(first), print(program_, first)),
              fmt::format("{} (by: {})", to_string(coalesce(asked)), print(program_, second)),
              "rearrange one of them, or give both the same tile shape"};
  }

  bool propagate_map(State& state, const Statement& statement, const Map& map, bool& changed) {
    std::vector<TensorId> tensors = {map.dst};
    tensors_of(map.value, tensors);
    const auto& full = program_.tensor(map.dst).shape;
    const TvLayout* known = nullptr;
    for (const TensorId id : tensors) {
      const auto found = state.registers.find(id);
      if (!known && found != state.registers.end() && program_.tensor(id).shape == full) known = &found->second;
    }
    if (!known) return true;
    const TvLayout base = *known;
    for (const TensorId id : tensors) {
      const auto& shape = program_.tensor(id).shape;
      const TvLayout layout = shape == full ? base : broadcast_operand(base, shape);
      if (!want(state, id, layout, statement, changed)) return false;
    }
    return true;
  }

  bool propagate_reduce(State& state, const Statement& statement, const Reduce& node, bool& changed) {
    const auto source = state.registers.find(node.src);
    if (source == state.registers.end()) return true;
    const auto reduced = layout::reduce(source->second, node.axis);
    if (!reduced) {
      if (!first_error_) first_error_ = reduced.error(), first_error_->place = place_of(statement);
      return false;
    }
    return want(state, node.dst, *reduced, statement, changed);
  }

  bool propagate_cast(State& state, const Statement& statement, const Copy& copy, bool& changed) {
    const Tensor &src = program_.tensor(copy.src.tensor), &dst = program_.tensor(copy.dst.tensor);
    if (src.scope != Scope::reg || dst.scope != Scope::reg) return true;
    return propagate_pair(state, statement, copy.src.tensor, copy.dst.tensor, changed);
  }

  // Two tensors that hold the same bits, each in the layout that the other's gives.
  bool propagate_pair(State& state, const Statement& statement, TensorId src, TensorId dst, bool& changed) {
    const bool known = state.registers.count(src) > 0;
    const TensorId from = known ? src : dst, to = known ? dst : src;
    const auto layout = state.registers.find(from);
    if (layout == state.registers.end()) return true;
    if (!std::holds_alternative<Reinterpret>(statement.node))
      return want(state, to, seen_from(layout->second, program_.tensor(from).shape, program_.tensor(to).shape), statement,
                  changed);
    const auto other = rescaled(layout->second, bits_of(program_.tensor(from).dtype), bits_of(program_.tensor(to).dtype),
                                program_.tensor(to).shape);
    if (other) return want(state, to, *other, statement, changed);
    if (!first_error_)
      first_error_ = Error{ErrorCode::kNoLayout,
                           "a thread does not hold whole elements of a wider type",
                           place_of(statement),
                           "neighbours along the last dimension in one thread",
                           to_string(coalesce(layout->second)),
                           "rearrange the tensor first"};
    return false;
  }

  bool propagate_scan(State& state, const Statement& statement, const Scan& node, bool& changed) {
    if (!propagate_pair(state, statement, node.src, node.dst, changed)) return false;
    const auto known = state.registers.find(node.dst);
    if (known == state.registers.end()) return true;
    const auto along = layout::reduce(known->second, node.axis);
    if (!along && !first_error_) first_error_ = along.error();
    return along.has_value();
  }

  bool propagate(State& state) {
    for (bool changed = true; changed;) {
      changed = false;
      for (const Site& site : sites_) {
        const Statement& statement = *site.statement;
        bool fits = true;
        if (const auto* map = std::get_if<Map>(&statement.node)) fits = propagate_map(state, statement, *map, changed);
        if (const auto* node = std::get_if<Reduce>(&statement.node)) fits = propagate_reduce(state, statement, *node, changed);
        if (const auto* node = std::get_if<Scan>(&statement.node)) fits = propagate_scan(state, statement, *node, changed);
        if (const auto* node = std::get_if<Reinterpret>(&statement.node))
          fits = propagate_pair(state, statement, node->src, node->dst, changed);
        if (const auto* copy = std::get_if<Copy>(&statement.node)) fits = propagate_cast(state, statement, *copy, changed);
        if (!fits) return false;
      }
    }
    return true;
  }

  // Depth-first: propagate, take the next open decision, follow its alternatives in order. A branch that clashes ends.
  void search(State state) {
    if (++nodes_ > kNodeBudget || found_.size() >= kMostSolutions || !propagate(state)) return;
    for (const Site& site : sites_) {
      const auto* mma = std::get_if<Mma>(&site.statement->node);
      if (mma && !state.matrix.count(site.statement)) return try_tilings(state, site, *mma);
    }
    const Site* open = widest_open_copy(state);
    if (open) return try_vectors(state, *open);
    return settle_rest(state);
  }

  void try_tilings(const State& state, const Site& site, const Mma& mma) {
    const auto tilings = matrix_tilings(program_, mma, site.first, site.threads, capabilities_);
    if (tilings.empty() && !first_error_) first_error_ = no_matrix_instruction(site, mma);
    for (const MatrixTiling& tiling : tilings) {
      State next = state;
      bool changed = false;
      next.matrix[site.statement] = tiling.instruction;
      bool fits = want(next, mma.acc, tiling.acc, *site.statement, changed);
      if (!tiling.instruction->a_shared) fits = fits && want(next, mma.a.tensor, tiling.a, *site.statement, changed);
      if (!tiling.instruction->b_shared) fits = fits && want(next, mma.b.tensor, tiling.b, *site.statement, changed);
      if (fits) search(std::move(next));
    }
  }

  Error no_matrix_instruction(const Site& site, const Mma& mma) const {
    const auto operand = [&](const Tile& tile) {
      const Tensor& tensor = program_.tensor(tile.tensor);
      return fmt::format("'{}' {} {} in {}", tensor.name, name_of(tensor.dtype), text_of(tile.extent),
                         tensor.scope == Scope::shared ? "shared memory" : "registers");
    };
    const Tensor& acc = program_.tensor(mma.acc);
    return {ErrorCode::kNoInstruction,
            fmt::format("no matrix instruction of {} fits a statement", capabilities_.arch),
            place_of(*site.statement),
            why_no_tiling(program_, mma, site.first, site.threads, capabilities_),
            fmt::format("{}: '{}' {} {}, {}, {}, {} warps", print(program_, *site.statement), acc.name, name_of(acc.dtype),
                        text_of(acc.shape), operand(mma.a), operand(mma.b), site.threads / 32),
            "change the tile shape, the number of warps, the type or where the operands live"};
  }

  static const Tile* register_side(const Program& program, const Copy& copy, Scope other, const Tile** memory) {
    const Scope src = program.tensor(copy.src.tensor).scope, dst = program.tensor(copy.dst.tensor).scope;
    if (src == Scope::reg && dst == other) return *memory = &copy.dst, &copy.src;
    if (dst == Scope::reg && src == other) return *memory = &copy.src, &copy.dst;
    return nullptr;
  }

  // The open register tensor with the most elements that a global (else a shared) copy touches.
  const Site* widest_open_copy(const State& state) const {
    for (const Scope memory_scope : {Scope::global, Scope::shared}) {
      const Site* best = nullptr;
      std::int64_t best_elements = 0;
      for (const Site& site : sites_) {
        const auto* copy = std::get_if<Copy>(&site.statement->node);
        const Tile* memory = nullptr;
        const Tile* side = copy ? register_side(program_, *copy, memory_scope, &memory) : nullptr;
        if (!side || state.registers.count(side->tensor)) continue;
        std::int64_t elements = 1;
        for (const auto extent : side->extent) elements *= extent;
        if (elements > best_elements) best = &site, best_elements = elements;
      }
      if (best) return best;
    }
    return nullptr;
  }

  void try_vectors(const State& state, const Site& site) {
    const auto& copy = std::get<Copy>(site.statement->node);
    const Tile* memory = nullptr;
    const Tile* side = register_side(program_, copy, Scope::global, &memory);
    int contiguous = static_cast<int>(program_.tensor(copy.dst.tensor).shape.size()) - 1;
    int width = 128 / bits_of(program_.tensor(copy.dst.tensor).dtype);
    if (side) {
      width = vector_limit(program_, bounds_, *memory, 16);
      contiguous = met_by(*side, *memory, contiguous_dim(program_.tensor(memory->tensor)))
                       .value_or(static_cast<int>(side->extent.size()) - 1);
    } else {
      side = register_side(program_, copy, Scope::shared, &memory);
      contiguous = static_cast<int>(side->extent.size()) - 1;
    }
    const int least = per_byte(program_.tensor(side->tensor).dtype);
    for (; width >= least; width /= 2) {
      const auto layout = layout::coalesced(program_.tensor(side->tensor).shape, contiguous, width, site.threads);
      if (!layout) {
        if (width == least && !first_error_) first_error_ = not_spread(program_, site, side->tensor);
        continue;
      }
      State next = state;
      bool changed = false;
      const std::size_t before = found_.size();
      if (want(next, side->tensor, *layout, *site.statement, changed)) search(std::move(next));
      if (found_.size() > before) return;  // narrower vectors only where wider ones lead nowhere
    }
  }

  // Tensors no copy and no matrix statement reaches: the layout with which a rearrangement moves nothing, else any.
  void settle_rest(State state) {
    for (const Site& site : sites_) {
      const auto* node = std::get_if<Rearrange>(&site.statement->node);
      if (!node || state.registers.count(node->src) == state.registers.count(node->dst)) continue;
      const bool forward = state.registers.count(node->src) > 0;
      const TvLayout layout = flipped(state.registers.at(forward ? node->src : node->dst), node->transpose);
      bool changed = false;
      State next = state;
      const std::size_t before = found_.size();
      if (want(next, forward ? node->dst : node->src, layout, *site.statement, changed)) search(std::move(next));
      if (found_.size() > before) return;
      break;
    }
    for (const Site& site : sites_) {
      TensorId open = -1;
      if (const auto* fill = std::get_if<Fill>(&site.statement->node)) open = fill->dst;
      if (const auto* map = std::get_if<Map>(&site.statement->node)) open = map->dst;
      if (open < 0 || state.registers.count(open)) continue;
      const auto& shape = program_.tensor(open).shape;
      const int least = per_byte(program_.tensor(open).dtype);
      const auto layout = layout::coalesced(shape, static_cast<int>(shape.size()) - 1, least, site.threads);
      if (!layout) {
        if (!first_error_) first_error_ = not_spread(program_, site, open);
        return;
      }
      bool changed = false;
      if (want(state, open, *layout, *site.statement, changed)) search(std::move(state));
      return;
    }
    found_.push_back(std::move(state));
  }

  const Program& program_;
  const std::vector<Site>& sites_;
  const Bounds& bounds_;
  const target::Capabilities& capabilities_;
  std::vector<RegisterSolution> found_;
  std::optional<Error> first_error_;
  int nodes_ = 0;
};
}  // namespace
Result<std::vector<RegisterSolution>> solve_registers(const Program& program, const std::vector<Site>& sites,
                                                      const Bounds& bounds, const target::Capabilities& capabilities) {
  return Solver(program, sites, bounds, capabilities).run();
}

Error not_spread(const Program& program, const Site& site, TensorId tensor) {
  const Tensor& of = program.tensor(tensor);
  return {ErrorCode::kNoLayout,
          fmt::format("the threads of a statement cannot be spread evenly over '{}'", of.name),
          place_of(*site.statement),
          fmt::format("extents of '{}' that share their factors with {} threads, or fewer elements than threads", of.name,
                      site.threads),
          fmt::format("{}: {} over {} threads", print(program, *site.statement), text_of(of.shape), site.threads),
          "pad the tile, or change the number of warps"};
}
}  // namespace warploom::synth
