#include "synth/registers.h"
#include <fmt/format.h>
#include "tile/print.h"

namespace warploom::synth {
namespace {

using layout::TvLayout;
using namespace tile;

class Solver {
 public:
  Solver(const Program& program, const std::vector<Site>& sites, const Bounds& bounds,
         const target::Capabilities& capabilities)
      : program_(program), sites_(sites), bounds_(bounds), capabilities_(capabilities) {}

  Result<RegisterSolution> run() {
    State state;
    if (search(state)) return std::move(state.solution);
    if (first_error_) return fail(*first_error_);
    return fail({ErrorCode::kNoLayout, "no register layouts fit the program", program_.name, "a solution",
                 fmt::format("none within {} nodes", kNodeBudget), "change the tile shape or the number of warps"});
  }

 private:
  struct State {
    RegisterSolution solution;
    std::map<TensorId, const Statement*> set_by;
  };
  static constexpr int kNodeBudget = 2000;

  // Records a layout a statement asks for; false when the tensor already has another.
  bool want(State& state, TensorId tensor, const TvLayout& layout, const Statement& by, bool& changed) {
    const auto [place, fresh] = state.solution.registers.try_emplace(tensor, layout);
    if (fresh) {
      state.set_by[tensor] = &by;
      changed = true;
      return true;
    }
    if (place->second == layout || coalesce(place->second) == coalesce(layout)) return true;
    conflict(tensor, *state.set_by[tensor], by, place->second, layout);
    return false;
  }

  void conflict(TensorId tensor, const Statement& first, const Statement& second, const TvLayout& have,
                const TvLayout& asked) {
    if (first_error_) return;
    first_error_ = Error{
        ErrorCode::kNoLayout,
        fmt::format("two statements ask for different layouts of register tensor '{}'", program_.tensor(tensor).name),
        place_of(second),
        fmt::format("{} ({}: {})", to_string(coalesce(have)), place_of(first), print(program_, first)),
        fmt::format("{} (by: {})", to_string(coalesce(asked)), print(program_, second)),
        "copy one of them through a shared tensor, or give both the same tile shape"};
  }

  bool propagate_map(State& state, const Statement& statement, const Map& map, bool& changed) {
    std::vector<TensorId> tensors = {map.dst};
    tensors_of(map.value, tensors);
    const auto& full = program_.tensor(map.dst).shape;
    const TvLayout* known = nullptr;
    for (const TensorId id : tensors) {
      const auto found = state.solution.registers.find(id);
      if (!known && found != state.solution.registers.end() && program_.tensor(id).shape == full)
        known = &found->second;
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
    const auto source = state.solution.registers.find(node.src);
    if (source == state.solution.registers.end()) return true;
    const auto reduced = layout::reduce(source->second, node.axis);
    if (!reduced) {
      if (!first_error_) first_error_ = reduced.error();
      return false;
    }
    return want(state, node.dst, *reduced, statement, changed);
  }

  bool propagate_cast(State& state, const Statement& statement, const Copy& copy, bool& changed) {
    const Tensor &src = program_.tensor(copy.src.tensor), &dst = program_.tensor(copy.dst.tensor);
    if (src.scope != Scope::reg || dst.scope != Scope::reg || src.shape != dst.shape) return true;
    const auto a = state.solution.registers.find(copy.src.tensor), b = state.solution.registers.find(copy.dst.tensor);
    const auto end = state.solution.registers.end();
    if (a != end) return want(state, copy.dst.tensor, TvLayout(a->second), statement, changed);
    if (b != end) return want(state, copy.src.tensor, TvLayout(b->second), statement, changed);
    return true;
  }

  bool propagate(State& state) {
    for (bool changed = true; changed;) {
      changed = false;
      for (const Site& site : sites_) {
        const Statement& statement = *site.statement;
        bool fits = true;
        if (const auto* map = std::get_if<Map>(&statement.node)) fits = propagate_map(state, statement, *map, changed);
        if (const auto* node = std::get_if<Reduce>(&statement.node))
          fits = propagate_reduce(state, statement, *node, changed);
        if (const auto* copy = std::get_if<Copy>(&statement.node))
          fits = propagate_cast(state, statement, *copy, changed);
        if (!fits) return false;
      }
    }
    return true;
  }

  // Depth-first: propagate, take the next open decision, try its alternatives in order.
  bool search(State& state) {
    if (++nodes_ > kNodeBudget || !propagate(state)) return false;
    for (const Site& site : sites_) {
      const auto* mma = std::get_if<Mma>(&site.statement->node);
      if (mma && !state.solution.matrix.count(site.statement)) return try_tilings(state, site, *mma);
    }
    const Site* open = widest_open_copy(state);
    if (open) return try_vectors(state, *open);
    return settle_rest(state);
  }

  bool try_tilings(State& state, const Site& site, const Mma& mma) {
    const auto tilings = matrix_tilings(program_, mma, site.first, site.threads, capabilities_);
    if (tilings.empty() && !first_error_) first_error_ = no_matrix_instruction(site, mma);
    for (const MatrixTiling& tiling : tilings) {
      State next = state;
      bool changed = false;
      next.solution.matrix[site.statement] = tiling.instruction;
      bool fits = want(next, mma.acc, tiling.acc, *site.statement, changed);
      if (!tiling.instruction->a_shared) fits = fits && want(next, mma.a.tensor, tiling.a, *site.statement, changed);
      if (!tiling.instruction->b_shared) fits = fits && want(next, mma.b.tensor, tiling.b, *site.statement, changed);
      if (fits && search(next)) {
        state = std::move(next);
        return true;
      }
    }
    return false;
  }

  Error no_matrix_instruction(const Site& site, const Mma& mma) const {
    const Tensor &acc = program_.tensor(mma.acc), &a = program_.tensor(mma.a.tensor);
    return {ErrorCode::kNoInstruction,
            fmt::format("no matrix instruction of {} fits a statement", capabilities_.arch),
            place_of(*site.statement),
            "a tile that the instruction's m, n and k divide once it is spread over the role's warps, "
            "operands both shared or both in "
            "registers",
            fmt::format("{}: {} operands, accumulator {}x{}, {} warps", print(program_, *site.statement),
                        name_of(a.dtype), acc.shape[0], acc.shape[1], site.threads / 32),
            "change the tile shape, the number of warps or where the operands live"};
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
        if (!side || state.solution.registers.count(side->tensor)) continue;
        std::int64_t elements = 1;
        for (const auto extent : side->extent) elements *= extent;
        if (elements > best_elements) best = &site, best_elements = elements;
      }
      if (best) return best;
    }
    return nullptr;
  }

  bool try_vectors(State& state, const Site& site) {
    const auto& copy = std::get<Copy>(site.statement->node);
    const Tile* memory = nullptr;
    const Tile* side = register_side(program_, copy, Scope::global, &memory);
    int contiguous = static_cast<int>(program_.tensor(copy.dst.tensor).shape.size()) - 1;
    int width = 16 / bytes_of(program_.tensor(copy.dst.tensor).dtype);
    if (side) {
      width = vector_limit(program_, bounds_, *memory, 16);
      const auto along = contiguous_dim(program_.tensor(memory->tensor));
      const auto memory_dims = wide_dims(memory->extent), register_dims = wide_dims(side->extent);
      contiguous = static_cast<int>(side->extent.size()) - 1;
      for (std::size_t i = 0; i < memory_dims.size() && i < register_dims.size(); ++i)
        if (along && memory_dims[i] == *along) contiguous = register_dims[i];
    } else {
      side = register_side(program_, copy, Scope::shared, &memory);
      contiguous = static_cast<int>(side->extent.size()) - 1;
    }
    for (; width >= 1; width /= 2) {
      const auto layout = layout::coalesced(program_.tensor(side->tensor).shape, contiguous, width, site.threads);
      if (!layout) {
        if (width == 1 && !first_error_) first_error_ = layout.error();
        continue;
      }
      State next = state;
      bool changed = false;
      if (want(next, side->tensor, *layout, *site.statement, changed) && search(next)) {
        state = std::move(next);
        return true;
      }
    }
    return false;
  }

  // Tensors no copy and no matrix statement reaches: any layout serves.
  bool settle_rest(State& state) {
    for (const Site& site : sites_) {
      TensorId open = -1;
      if (const auto* fill = std::get_if<Fill>(&site.statement->node)) open = fill->dst;
      if (const auto* map = std::get_if<Map>(&site.statement->node)) open = map->dst;
      if (open < 0 || state.solution.registers.count(open)) continue;
      const auto& shape = program_.tensor(open).shape;
      const auto layout = layout::coalesced(shape, static_cast<int>(shape.size()) - 1, 1, site.threads);
      if (!layout) {
        if (!first_error_) first_error_ = layout.error();
        return false;
      }
      bool changed = false;
      return want(state, open, *layout, *site.statement, changed) && search(state);
    }
    return true;
  }

  const Program& program_;
  const std::vector<Site>& sites_;
  const Bounds& bounds_;
  const target::Capabilities& capabilities_;
  std::optional<Error> first_error_;
  int nodes_ = 0;
};

}  // namespace

Result<RegisterSolution> solve_registers(const Program& program, const std::vector<Site>& sites, const Bounds& bounds,
                                         const target::Capabilities& capabilities) {
  return Solver(program, sites, bounds, capabilities).run();
}

}  // namespace warploom::synth
