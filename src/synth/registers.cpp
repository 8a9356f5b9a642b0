#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "layout/tv_layout.h"
#include "synth/sites.h"
#include "synth/solve.h"
#include "synth/synthesize.h"
#include "tile/print.h"
#include "tile/program.h"

namespace warploom::synth {
namespace {
using layout::Coord;

// The layout of the same bits as elements of another width, along the last dimension; nothing where
// an element would be torn apart.
std::optional<TvLayout> rescaled(const TvLayout& layout, int from, int to,
                                 const std::vector<int64_t>& tile) {
  TvLayout out = coalesce(layout);
  out.tile = tile;
  Coord unit(tile.size(), 0);
  unit.back() = 1;
  const int64_t ratio = std::max(from, to) / std::min(from, to);
  if (from < to) {
    if (out.value.empty() || out.value[0].step != unit || out.value[0].extent % ratio)
      return std::nullopt;
    out.value[0].extent /= ratio;
    out.value[0].step.back() = ratio;
  }
  for (auto* modes : {&out.thread, &out.value})
    for (layout::TvMode& mode : *modes) {
      if (from < to && mode.step.back() % ratio) return std::nullopt;
      if (from < to)
        mode.step.back() /= ratio;
      else
        mode.step.back() *= ratio;
    }
  if (from >= to) out.value.insert(out.value.begin(), {ratio, unit});
  return out;
}

class RegisterSolver : SynthesisContext {
 public:
  explicit RegisterSolver(const SynthesisContext& question) : SynthesisContext(question) {
    for (const Site& site : sites)
      link(*site.statement);
  }

  Result<std::vector<Solution>> run();

 private:
  static constexpr int kNodeBudget = 2000;
  bool refuse(Error error);
  bool want(Solution& state, TensorId tensor, const TvLayout& layout, const Statement& by);

  // Where `from` has a layout, `to` has the one that follows; `back`: only where it has none yet,
  // as a link the other way checks.
  using Follow = std::function<Result<TvLayout>(const TvLayout&)>;

  struct Link {
    const Statement* by;
    TensorId from;
    TensorId to;
    Follow follow;
    bool back = false;
  };

  void link(const Statement& by);
  bool propagate(Solution& state);
  void search(Solution state);
  void try_tilings(const Solution& state, const Site& site, const Mma& mma);
  Error no_matrix_instruction(const Site& site, const Mma& mma, const std::string& lacks) const;
  const Site* widest_open_copy(const Solution& state) const;
  int64_t elements_of(const Site& copy) const;
  bool lead_on_from_conversion(const Solution& state, int64_t open);
  void try_vectors(const Solution& state, const Site& site);
  bool leads_on(Solution state, TensorId tensor, const TvLayout& layout, const Statement& by);
  void settle_rest(Solution state);

  std::vector<Link> links_;
  std::vector<Solution> found_;
  std::optional<Error> first_error_;
  int nodes_ = 0;
  bool changed_ = false;  // by want()
};

Result<std::vector<Solution>> RegisterSolver::run() {
  search({});
  if (!found_.empty()) return std::move(found_);
  if (first_error_ && first_error_->code == ErrorCode::kLayout)
    first_error_->code = ErrorCode::kNoLayout;
  if (first_error_) return fail(*first_error_);
  const std::string found = fmt::format("none within {} nodes", kNodeBudget);
  return fail({ErrorCode::kNoLayout, "no register layouts fit the program", program.name,
               "a solution", found, "change the tile shape or the number of warps"});
}

// The first refusal is the error of a search that finds nothing.
bool RegisterSolver::refuse(Error error) {
  if (!first_error_) first_error_ = std::move(error);
  return false;
}

// Records a layout a statement asks for; false when the tensor already has another.
bool RegisterSolver::want(Solution& state, TensorId tensor, const TvLayout& layout,
                          const Statement& by) {
  const auto [place, fresh] = state.registers.try_emplace(tensor, layout);
  if (fresh) state.reasons[tensor] = {by.id, "its threads and values"};
  changed_ |= fresh;
  if (fresh || place->second == layout || coalesce(place->second) == coalesce(layout)) return true;
  if (first_error_) return false;
  const Statement& first = *statement_with(program, state.reasons[tensor].by);
  const std::string before = to_string(coalesce(place->second));
  const std::string now = to_string(coalesce(layout));
  Error error{ErrorCode::kNoLayout};
  error.message = fmt::format("two statements ask for different layouts of register tensor '{}'",
                              program.tensor(tensor).name);
  error.place = place_of(by);
  error.expected = fmt::format("{} ({}: {})", before, place_of(first), print(program, first));
  error.found = fmt::format("{} (by: {})", now, print(program, by));
  error.remedy = "rearrange one of them, or give both the same tile shape";
  return refuse(std::move(error));
}

// What each kind of statement asks of its tensors' layouts.
void RegisterSolver::link(const Statement& by) {
  const auto both = [&](TensorId a, TensorId b, const auto& follow) {
    links_.push_back({&by, a, b, [=](const TvLayout& layout) { return follow(layout, a, b); }});
    links_.push_back(
        {&by, b, a, [=](const TvLayout& layout) { return follow(layout, b, a); }, true});
  };
  const auto seen = [this](const TvLayout& layout, TensorId, TensorId to) -> Result<TvLayout> {
    return seen_from(layout, program.tensor(to).shape);
  };
  if (const auto* map = by.as<Map>()) {
    for (const TensorId id : tensors_of(map->value))
      if (const auto* shape = &program.tensor(id).shape; *shape == program.tensor(map->dst).shape)
        both(map->dst, id, seen);
      else
        links_.push_back({&by, map->dst, id,
                          [shape](const TvLayout& of) { return broadcast_operand(of, *shape); }});
  } else if (const auto* reduce = by.as<Reduce>()) {
    const auto reduced = [=](const TvLayout& of) { return layout::reduce(of, reduce->axis); };
    links_.push_back({&by, reduce->src, reduce->dst, reduced});
  } else if (const auto* scan = by.as<Scan>()) {
    both(scan->src, scan->dst, [=](const TvLayout& layout, TensorId from, TensorId to) {
      return layout::reduce(layout, scan->axis).and_then([&](const TvLayout&) {
        return seen(layout, from, to);
      });
    });
  } else if (const auto* copy = by.as<Copy>()) {
    const Sides sides = sides_of(program, *copy);
    if (!sides.global && !sides.shared) both(copy->src.tensor, copy->dst.tensor, seen);
  } else if (const auto* node = by.as<Bitcast>()) {
    both(node->src, node->dst,
         [this](const TvLayout& layout, TensorId from, TensorId to) -> Result<TvLayout> {
           const Tensor& have = program.tensor(from);
           const Tensor& wanted = program.tensor(to);
           if (auto other =
                   rescaled(layout, bits_of(have.dtype), bits_of(wanted.dtype), wanted.shape))
             return std::move(*other);
           return fail({ErrorCode::kNoLayout,
                        "a thread does not hold whole elements of a wider type", "",
                        "neighbours along the last dimension in one thread",
                        to_string(coalesce(layout)), "rearrange the tensor first"});
         });
  }
}

bool RegisterSolver::propagate(Solution& state) {
  do {
    changed_ = false;
    for (const Link& link : links_) {
      const auto from = state.registers.find(link.from);
      if (from == state.registers.end() || (link.back && state.registers.count(link.to))) continue;
      auto layout = link.follow(from->second);
      if (!layout) layout.error().place = place_of(*link.by);
      if (layout ? !want(state, link.to, *layout, *link.by) : !refuse(layout.error())) return false;
    }
  } while (changed_);
  return true;
}

// Depth-first: propagate, take the next open decision, follow its alternatives in order. A branch
// that clashes ends.
void RegisterSolver::search(Solution state) {
  if (++nodes_ > kNodeBudget || found_.size() >= kMostSolutions || !propagate(state)) return;
  for (const Site& site : sites)
    if (const auto* mma = site.statement->as<Mma>();
        mma && !state.choices.count(site.statement->id))
      return try_tilings(state, site, *mma);
  const Site* open = widest_open_copy(state);
  if (lead_on_from_conversion(state, open ? elements_of(*open) : 0)) return;
  if (open) return try_vectors(state, *open);
  return settle_rest(state);
}

void RegisterSolver::try_tilings(const Solution& state, const Site& site, const Mma& mma) {
  const MatrixTilings tilings =
      matrix_tilings(program, mma, site.first, site.threads, capabilities);
  if (tilings.found.empty()) refuse(no_matrix_instruction(site, mma, tilings.lacks));
  for (const MatrixTiling& tiling : tilings.found) {
    Solution next = state;
    next.choices[site.statement->id] = {
        tiling.instruction,
        1,
        {},
        "operands of these types in these memories, tiles that it divides"};
    if (want(next, mma.acc, tiling.acc, *site.statement) &&
        (tiling.instruction->a_shared || want(next, mma.a.tensor, tiling.a, *site.statement)) &&
        (tiling.instruction->b_shared || want(next, mma.b.tensor, tiling.b, *site.statement)))
      search(std::move(next));
  }
}

Error RegisterSolver::no_matrix_instruction(const Site& site, const Mma& mma,
                                            const std::string& lacks) const {
  const auto operand = [&](const Tile& tile) {
    const Tensor& tensor = program.tensor(tile.tensor);
    const bool shared = tensor.scope == Scope::shared;
    const char* const memory = shared ? "shared memory" : "registers";
    return fmt::format("'{}' {} {} in {}", tensor.name, name_of(tensor.dtype), text_of(tile.extent),
                       memory);
  };
  const Tensor& acc = program.tensor(mma.acc);
  const std::string sums =
      fmt::format("'{}' {} {}", acc.name, name_of(acc.dtype), text_of(acc.shape));
  const std::string operands = fmt::format("{}, {}", operand(mma.a), operand(mma.b));
  const std::string statement = print(program, *site.statement);
  Error error{ErrorCode::kNoInstruction};
  error.message = fmt::format("no matrix instruction of {} fits a statement", capabilities.arch);
  error.place = place_of(*site.statement);
  error.expected = lacks;
  error.found = fmt::format("{}: {}, {}, {} warps", statement, sums, operands, site.threads / 32);
  error.remedy = "change the tile shape, the number of warps, the type or where the operands live";
  return error;
}

// The open register tensor that a copy touches: by a global copy before one that asks for less,
// then with the most elements.
const Site* RegisterSolver::widest_open_copy(const Solution& state) const {
  const Site* best = nullptr;
  std::pair<bool, int64_t> most;
  for (const Site& site : sites)
    if (const auto* copy = site.statement->as<Copy>()) {
      const Sides sides = sides_of(program, *copy);
      if (!sides.registers || (!sides.global && !sides.shared) ||
          state.registers.count(sides.registers->tensor))
        continue;
      const bool from_global = sides.global && !program.tensor(sides.global->tensor).prepacked;
      const std::pair of{from_global, elements_of(site)};
      if (of > most) {
        best = &site;
        most = of;
      }
    }
  return best;
}

int64_t RegisterSolver::elements_of(const Site& copy) const {
  const Sides sides = sides_of(program, std::get<Copy>(copy.statement->node));
  return element_count(sides.registers->extent);
}

// Where one side of a rearrangement, larger than what is open besides, is known: the layout with
// which it moves nothing.
bool RegisterSolver::lead_on_from_conversion(const Solution& state, int64_t open) {
  for (const Site& site : sites) {
    const auto* node = site.statement->as<ConvertLayout>();
    if (!node || state.registers.count(node->src) == state.registers.count(node->dst)) continue;
    const bool forward = state.registers.count(node->src) > 0;
    if (element_count(program.tensor(node->dst).shape) <= open) continue;
    const TensorId known = forward ? node->src : node->dst;
    const TensorId open_side = forward ? node->dst : node->src;
    const TvLayout layout = flipped(state.registers.at(known), node->transpose);
    return leads_on(state, open_side, layout, *site.statement);
  }
  return false;
}

void RegisterSolver::try_vectors(const Solution& state, const Site& site) {
  const auto& copy = std::get<Copy>(site.statement->node);
  const Sides sides = sides_of(program, copy);
  const Tile* side = sides.registers;
  const Tile* global = program.tensor(copy.src.tensor).prepacked ? nullptr : sides.global;
  const auto wide = wide_dims(side->extent);
  size_t contiguous = wide.empty() ? 0 : wide.back();
  int width = 128 / bits_of(program.tensor(copy.dst.tensor).dtype);
  if (global) {
    const auto in_memory = contiguous_dim(program.tensor(global->tensor));
    contiguous = met_by(*side, *global, in_memory).value_or(contiguous);
    width = vector_limit(program, bounds, *global);
  }
  const int least = per_byte(program.tensor(side->tensor).dtype);
  for (; width >= least; width /= 2) {
    const Coord& shape = program.tensor(side->tensor).shape;
    const auto layout = layout::coalesced(shape, contiguous, width, site.threads);
    if (!layout && width == least) refuse(not_spread(program, site, side->tensor));
    if (layout && leads_on(state, side->tensor, *layout, *site.statement))
      return;  // narrower ones only where it leads nowhere
  }
}

// Whether something was found where the tensor has this layout.
bool RegisterSolver::leads_on(Solution state, TensorId tensor, const TvLayout& layout,
                              const Statement& by) {
  const size_t before = found_.size();
  if (want(state, tensor, layout, by)) search(std::move(state));
  return found_.size() > before;
}

// Tensors no copy, no matrix statement and no rearrangement reaches: any.
void RegisterSolver::settle_rest(Solution state) {
  for (const Site& site : sites) {
    TensorId open = -1;
    if (const auto* fill = site.statement->as<Fill>()) open = fill->dst;
    if (const auto* map = site.statement->as<Map>()) open = map->dst;
    if (open < 0 || state.registers.count(open)) continue;
    const auto& shape = program.tensor(open).shape;
    const int least = per_byte(program.tensor(open).dtype);
    const auto layout = layout::coalesced(shape, shape.size() - 1, least, site.threads);
    if (!layout)
      refuse(not_spread(program, site, open));
    else if (want(state, open, *layout, *site.statement))
      search(std::move(state));
    return;
  }
  for (const Site& site : sites)  // one that nothing but a rearrangement reaches, which led nowhere
    if (const auto* node = site.statement->as<ConvertLayout>();
        node && !state.registers.count(node->dst))
      return;
  found_.push_back(std::move(state));
}
}  // namespace

Result<std::vector<Solution>> solve_registers(const SynthesisContext& question) {
  return RegisterSolver(question).run();
}

Error not_spread(const Program& program, const Site& site, TensorId tensor) {
  const Tensor& of = program.tensor(tensor);
  const std::string statement = print(program, *site.statement);
  Error error{ErrorCode::kNoLayout};
  error.message =
      fmt::format("the threads of a statement cannot be spread evenly over '{}'", of.name);
  error.place = place_of(*site.statement);
  error.expected = fmt::format(
      "extents of '{}' that share their factors with {} threads, or fewer elements than threads",
      of.name, site.threads);
  error.found = fmt::format("{}: {} over {} threads", statement, text_of(of.shape), site.threads);
  error.remedy = "pad the tile, or change the number of warps";
  return error;
}
}  // namespace warploom::synth
