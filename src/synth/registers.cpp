#include "synth/exchange.h"
#include "synth/solve.h"
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

class Solver : Question {
 public:
  explicit Solver(const Question& question) : Question(question) {}

  Result<std::vector<RegisterSolution>> run() {
    search({});
    if (!found_.empty()) return std::move(found_);
    if (first_error_ && first_error_->code == ErrorCode::kLayout) first_error_->code = ErrorCode::kNoLayout;
    if (first_error_) return fail(*first_error_);
    return fail({ErrorCode::kNoLayout, "no register layouts fit the program", program.name, "a solution",
                 fmt::format("none within {} nodes", kNodeBudget), "change the tile shape or the number of warps"});
  }

 private:
  using State = RegisterSolution;
  static constexpr int kNodeBudget = 2000;

  // The first refusal is the error of a search that finds nothing.
  bool refuse(Error error) {
    if (!first_error_) first_error_ = std::move(error);
    return false;
  }

  // Records a layout a statement asks for; false when the tensor already has another.
  bool want(State& state, TensorId tensor, const TvLayout& layout, const Statement& by) {
    const auto [place, fresh] = state.registers.try_emplace(tensor, layout);
    if (fresh) state.set_by[tensor] = &by;
    changed_ |= fresh;
    if (fresh || place->second == layout || coalesce(place->second) == coalesce(layout)) return true;
    if (first_error_) return false;
    const Statement& first = *state.set_by[tensor];
    return refuse({ErrorCode::kNoLayout,
                   fmt::format("two statements ask for different layouts of register tensor '{}'", program.tensor(tensor).name),
                   place_of(by),
                   fmt::format("{} ({}: {})", to_string(coalesce(place->second)), place_of(first), print(program, first)),
                   fmt::format("{} (by: {})", to_string(coalesce(layout)), print(program, by)),
                   "rearrange one of them, or give both the same tile shape"});
  }

  // What each kind of statement asks of its tensors' layouts; false where they clash.
  bool fits(State& state, const Statement& statement, const Map& map) {
    std::vector<TensorId> tensors = {map.dst};
    tensors_of(map.value, tensors);
    const auto& full = program.tensor(map.dst).shape;
    const auto known =
        std::ranges::find_if(tensors, [&](TensorId id) { return state.registers.count(id) && program.tensor(id).shape == full; });
    if (known == tensors.end()) return true;
    const TvLayout base = state.registers.at(*known);
    return std::ranges::all_of(tensors, [&](TensorId id) {
      const auto& shape = program.tensor(id).shape;
      return want(state, id, shape == full ? base : broadcast_operand(base, shape), statement);
    });
  }

  bool fits(State& state, const Statement& statement, const Reduce& node) {
    const auto source = state.registers.find(node.src);
    if (source == state.registers.end()) return true;
    auto reduced = layout::reduce(source->second, node.axis);
    if (reduced) return want(state, node.dst, *reduced, statement);
    reduced.error().place = place_of(statement);
    return refuse(reduced.error());
  }

  bool fits(State& state, const Statement& statement, const Scan& node) {
    if (!same_bits(state, statement, node.src, node.dst)) return false;
    const auto known = state.registers.find(node.dst);
    if (known == state.registers.end()) return true;
    const auto along = layout::reduce(known->second, node.axis);
    return along || refuse(along.error());
  }

  bool fits(State& state, const Statement& statement, const Reinterpret& node) {
    return same_bits(state, statement, node.src, node.dst);
  }

  bool fits(State& state, const Statement& statement, const Copy& copy) {
    const Tensor &src = program.tensor(copy.src.tensor), &dst = program.tensor(copy.dst.tensor);
    return src.scope != Scope::reg || dst.scope != Scope::reg || same_bits(state, statement, copy.src.tensor, copy.dst.tensor);
  }

  template <class Other>
  bool fits(State&, const Statement&, const Other&) {
    return true;
  }

  // Two tensors that hold the same bits, each in the layout that the other's gives.
  bool same_bits(State& state, const Statement& statement, TensorId src, TensorId dst) {
    const bool known = state.registers.count(src) > 0;
    const TensorId from = known ? src : dst, to = known ? dst : src;
    const auto layout = state.registers.find(from);
    if (layout == state.registers.end()) return true;
    const Tensor &have = program.tensor(from), &wanted = program.tensor(to);
    if (!std::holds_alternative<Reinterpret>(statement.node))
      return want(state, to, seen_from(layout->second, have.shape, wanted.shape), statement);
    const auto other = rescaled(layout->second, bits_of(have.dtype), bits_of(wanted.dtype), wanted.shape);
    if (other) return want(state, to, *other, statement);
    return refuse({ErrorCode::kNoLayout, "a thread does not hold whole elements of a wider type", place_of(statement),
                   "neighbours along the last dimension in one thread", to_string(coalesce(layout->second)),
                   "rearrange the tensor first"});
  }

  bool propagate(State& state) {
    do {
      changed_ = false;
      for (const Site& site : sites)
        if (!std::visit([&](const auto& node) { return fits(state, *site.statement, node); }, site.statement->node)) return false;
    } while (changed_);
    return true;
  }

  // Depth-first: propagate, take the next open decision, follow its alternatives in order. A branch that clashes ends.
  void search(State state) {
    if (++nodes_ > kNodeBudget || found_.size() >= kMostSolutions || !propagate(state)) return;
    for (const Site& site : sites) {
      const auto* mma = std::get_if<Mma>(&site.statement->node);
      if (mma && !state.matrix.count(site.statement)) return try_tilings(state, site, *mma);
    }
    const Site* open = widest_open_copy(state);
    if (open) return try_vectors(state, *open);
    return settle_rest(state);
  }

  void try_tilings(const State& state, const Site& site, const Mma& mma) {
    const MatrixTilings tilings = matrix_tilings(program, mma, site.first, site.threads, capabilities);
    if (tilings.found.empty()) refuse(no_matrix_instruction(site, mma, tilings.lacks));
    for (const MatrixTiling& tiling : tilings.found) {
      State next = state;
      next.matrix[site.statement] = tiling.instruction;
      if (want(next, mma.acc, tiling.acc, *site.statement) &&
          (tiling.instruction->a_shared || want(next, mma.a.tensor, tiling.a, *site.statement)) &&
          (tiling.instruction->b_shared || want(next, mma.b.tensor, tiling.b, *site.statement)))
        search(std::move(next));
    }
  }

  Error no_matrix_instruction(const Site& site, const Mma& mma, const std::string& lacks) const {
    const auto operand = [&](const Tile& tile) {
      const Tensor& tensor = program.tensor(tile.tensor);
      return fmt::format("'{}' {} {} in {}", tensor.name, name_of(tensor.dtype), text_of(tile.extent),
                         tensor.scope == Scope::shared ? "shared memory" : "registers");
    };
    const Tensor& acc = program.tensor(mma.acc);
    return {ErrorCode::kNoInstruction,
            fmt::format("no matrix instruction of {} fits a statement", capabilities.arch),
            place_of(*site.statement),
            lacks,
            fmt::format("{}: '{}' {} {}, {}, {}, {} warps", print(program, *site.statement), acc.name, name_of(acc.dtype),
                        text_of(acc.shape), operand(mma.a), operand(mma.b), site.threads / 32),
            "change the tile shape, the number of warps, the type or where the operands live"};
  }

  // A copy's register side and its memory side, where that lies in `memory`.
  std::pair<const Tile*, const Tile*> sides(const Copy& copy, Scope memory) const {
    const Scope src = program.tensor(copy.src.tensor).scope, dst = program.tensor(copy.dst.tensor).scope;
    if (src == Scope::reg && dst == memory) return {&copy.src, &copy.dst};
    if (dst == Scope::reg && src == memory) return {&copy.dst, &copy.src};
    return {};
  }

  // The open register tensor with the most elements that a global (else a shared) copy touches.
  const Site* widest_open_copy(const State& state) const {
    const Site* best = nullptr;
    std::int64_t most = 0;
    for (const Scope memory : {Scope::global, Scope::shared}) {
      for (const Site& site : sites)
        if (const auto* copy = std::get_if<Copy>(&site.statement->node))
          if (const Tile* side = sides(*copy, memory).first; side && !state.registers.count(side->tensor))
            if (const std::int64_t elements = element_count(side->extent); elements > most) best = &site, most = elements;
      if (best) break;
    }
    return best;
  }

  void try_vectors(const State& state, const Site& site) {
    const auto& copy = std::get<Copy>(site.statement->node);
    const auto [from_global, global] = sides(copy, Scope::global);
    const Tile* side = from_global ? from_global : sides(copy, Scope::shared).first;
    int contiguous = static_cast<int>(side->extent.size()) - 1;
    if (global) contiguous = met_by(*side, *global, contiguous_dim(program.tensor(global->tensor))).value_or(contiguous);
    int width = global ? vector_limit(program, bounds, *global, 16) : 128 / bits_of(program.tensor(copy.dst.tensor).dtype);
    const int least = per_byte(program.tensor(side->tensor).dtype);
    for (; width >= least; width /= 2) {
      const auto layout = layout::coalesced(program.tensor(side->tensor).shape, contiguous, width, site.threads);
      if (!layout && width == least) refuse(not_spread(program, site, side->tensor));
      if (layout && leads_on(state, side->tensor, *layout, *site.statement)) return;  // narrower ones only where it leads nowhere
    }
  }

  // Whether something was found where the tensor has this layout.
  bool leads_on(State state, TensorId tensor, const TvLayout& layout, const Statement& by) {
    const std::size_t before = found_.size();
    if (want(state, tensor, layout, by)) search(std::move(state));
    return found_.size() > before;
  }

  // Tensors no copy and no matrix statement reaches: the layout with which a rearrangement moves nothing, else any.
  void settle_rest(State state) {
    for (const Site& site : sites) {
      const auto* node = std::get_if<Rearrange>(&site.statement->node);
      if (!node || state.registers.count(node->src) == state.registers.count(node->dst)) continue;
      const bool forward = state.registers.count(node->src) > 0;
      const TvLayout layout = flipped(state.registers.at(forward ? node->src : node->dst), node->transpose);
      if (leads_on(state, forward ? node->dst : node->src, layout, *site.statement)) return;
      break;
    }
    for (const Site& site : sites) {
      TensorId open = -1;
      if (const auto* fill = std::get_if<Fill>(&site.statement->node)) open = fill->dst;
      if (const auto* map = std::get_if<Map>(&site.statement->node)) open = map->dst;
      if (open < 0 || state.registers.count(open)) continue;
      const auto& shape = program.tensor(open).shape;
      const int least = per_byte(program.tensor(open).dtype);
      const auto layout = layout::coalesced(shape, static_cast<int>(shape.size()) - 1, least, site.threads);
      if (!layout) refuse(not_spread(program, site, open));
      else if (want(state, open, *layout, *site.statement)) search(std::move(state));
      return;
    }
    found_.push_back(std::move(state));
  }

  std::vector<RegisterSolution> found_;
  std::optional<Error> first_error_;
  int nodes_ = 0;
  bool changed_ = false;  // by want()
};
}  // namespace
Result<std::vector<RegisterSolution>> solve_registers(const Question& question) { return Solver(question).run(); }

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
