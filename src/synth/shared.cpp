#include "synth/exchange.h"
#include "synth/solve.h"
#include "tile/print.h"
namespace warploom::synth {
namespace {
using layout::Coord;
using layout::MemoryLayout;
using layout::SharedAccess;
using layout::TvLayout;
using layout::TvMode;
using target::Instruction;
using target::Method;
using namespace tile;

const Instruction* row_of(const target::Capabilities& capabilities, Method method, Scope from, Scope to, bool transpose = false) {
  for (const Instruction& row : target::instructions_of(capabilities.arch))
    if (row.m == 0 && row.method == method && row.from == from && row.to == to && row.transpose == transpose) return &row;
  return nullptr;
}

// The widest panel that divides rows of so many bytes; 0 where none does.
std::int64_t panel_of(std::int64_t bytes) { return bytes % 128 == 0 ? 128 : bytes % 64 == 0 ? 64 : bytes % 32 == 0 ? 32 : 0; }

// One dimension contiguous, the others as they are.
MemoryLayout dense_along(int contiguous, const Tensor& tensor) {
  std::vector<int> order = {contiguous};
  for (int d = static_cast<int>(tensor.shape.size()); d-- > 0;)
    if (d != contiguous) order.push_back(d);
  return layout::dense(tensor.shape, order, bits_of(tensor.dtype));
}

// A use of a shared tensor by one statement.
struct Use {
  const Site* site;
  const Tile* shared;           // the box of the shared tensor
  const Tile* other = nullptr;  // copies: the other side
  const Mma* mma = nullptr;
  int k_dim = 0;  // mma: which dimension of the shared tensor is k
};

class SharedSolver : Question {
 public:
  SharedSolver(const Question& question, Solution& solution) : Question(question), solution_(solution) {}

  Status run() {
    for (TensorId id = 0; id < static_cast<TensorId>(program.tensors.size()); ++id)
      if (program.tensor(id).scope == Scope::shared) WARPLOOM_CHECK(solve(id));
    for (const Site& site : sites) {
      if (const auto* copy = std::get_if<Copy>(&site.statement->node)) {
        WARPLOOM_CHECK(choose(site, *copy));
        const auto choice = solution_.choices.find(site.statement);
        if (choice != solution_.choices.end()) WARPLOOM_CHECK(check_bytes(site, copy->src, choice->second));
      }
      if (const auto* node = std::get_if<Rearrange>(&site.statement->node)) WARPLOOM_CHECK(choose_rearrange(site, *node));
    }
    return ok();
  }

 private:
  Scope scope_of(const Tile& tile) const { return program.tensor(tile.tensor).scope; }

  std::vector<Use> uses_of(TensorId id) const {
    std::vector<Use> uses;
    for (const Site& site : sites) {
      if (const auto* copy = std::get_if<Copy>(&site.statement->node)) {
        if (copy->src.tensor == id) uses.push_back({&site, &copy->src, &copy->dst});
        if (copy->dst.tensor == id) uses.push_back({&site, &copy->dst, &copy->src});
      } else if (const auto* mma = std::get_if<Mma>(&site.statement->node)) {
        if (mma->a.tensor == id) uses.push_back({&site, &mma->a, nullptr, mma, mma->transpose_a ? 0 : 1});
        if (mma->b.tensor == id) uses.push_back({&site, &mma->b, nullptr, mma, mma->transpose_b ? 1 : 0});
      }
    }
    return uses;
  }

  // What the copy engine asks of a copy and does not get; nothing: it can move this box. It wants strides, base and the box's
  // start in its row in multiples of 16 bytes, fills with zeros alone, and all of a shared matrix, whose panels begin where their
  // swizzle does.
  struct Lack {
    std::string expected, found;
  };
  std::optional<Lack> engine_lacks(const Site& site, const Copy& copy) const {
    const bool load = scope_of(copy.src) == Scope::global;
    const Tile &global = load ? copy.src : copy.dst, &slot = load ? copy.dst : copy.src;
    const Tensor &tensor = program.tensor(global.tensor), &shared = program.tensor(slot.tensor);
    const bool converts = tensor.dtype == Dtype::f32 && shared.dtype == Dtype::tf32 && load;
    const auto contiguous = contiguous_dim(tensor);
    if (!capabilities.tensor_copy) return Lack{"a target that has one", capabilities.arch};
    if (global.lookup >= 0) return Lack{"a box that is not gathered", fmt::format("'{}' gathered", tensor.name)};
    if (!global.step.empty())
      return Lack{"a box of neighbours", fmt::format("steps {} of '{}'", text_of(global.step), tensor.name)};
    if (!contiguous)
      return Lack{fmt::format("a dimension of '{}' whose elements are neighbours", tensor.name),
                  fmt::format("strides {}", text_of(tensor.strides))};
    if (tensor.dtype != shared.dtype && !converts)
      return Lack{"one type on both sides",
                  fmt::format("'{}' {} and '{}' {}", tensor.name, name_of(tensor.dtype), shared.name, name_of(shared.dtype))};
    if (copy.combine && *copy.combine != ReduceOp::sum)
      return Lack{"a sum", *copy.combine == ReduceOp::max ? "a maximum" : "a minimum"};
    if (load && copy.fill != 0) return Lack{"a fill of 0", fmt::format("{}", copy.fill)};
    if (load && (site.producing < 0 || !is_between_roles(sites, site.producing)))
      return Lack{"a pipeline between roles", "one thread of control"};
    int rank = 0;
    for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
      if (tensor.shape[d] == 1 && !bounds.may_exceed(program, global, static_cast<int>(d))) continue;
      ++rank;
      const std::int64_t stride = bytes_of(tensor.dtype, tensor.strides[d]);
      if (static_cast<int>(d) != *contiguous && stride % 16)
        return Lack{fmt::format("dimension {} of '{}' in steps of a multiple of 16 bytes", d, tensor.name),
                    fmt::format("{} bytes", stride)};
    }
    if (rank > 5) return Lack{fmt::format("at most 5 dimensions of '{}'", tensor.name), fmt::format("{} dimensions", rank)};
    const auto inner = static_cast<std::size_t>(*contiguous);
    const auto extent = bytes_of(tensor.dtype, global.extent[inner]);
    const auto start = bytes_of(tensor.dtype, global.offset[inner].known_divisor());
    if (extent % 32)
      return Lack{fmt::format("a multiple of 32 bytes of dimension {} of '{}'", inner, tensor.name),
                  fmt::format("{} bytes", extent)};
    if (start % 16)
      return Lack{fmt::format("a start in dimension {} of '{}' at a multiple of 16 bytes", inner, tensor.name),
                  fmt::format("{}, multiples of {} bytes", global.offset[inner].text(), start)};
    const auto met = met_by(slot, global, contiguous);
    const auto row = met ? bytes_of(shared.dtype, shared.shape[static_cast<std::size_t>(*met)]) : 0;
    if (row == 0 || row % 32)
      return Lack{fmt::format("rows of '{}' of a multiple of 32 bytes", shared.name), fmt::format("{} bytes", row)};
    if (shared.shape.size() != 2 || slot.extent != shared.shape)
      return Lack{fmt::format("all of '{}', of two dimensions", shared.name), text_of(slot.extent)};
    const std::int64_t rows = shared.shape[static_cast<std::size_t>(1 - *met)];
    std::int64_t above =
        std::numeric_limits<std::int64_t>::max();  // rows of several dimensions: one box, slower dimensions first
    for (const int d : wide_dims(global.extent)) {
      const std::int64_t stride = d == *contiguous ? above : tensor.strides[static_cast<std::size_t>(d)];
      if (wide_dims(global.extent).size() > 2 && (stride > above || rows > 256 || !copy.multicast.empty()))
        return Lack{fmt::format("at most 256 rows of '{}' in the order of its strides, for one block", tensor.name),
                    fmt::format("{} rows {}", rows, text_of(global.extent))};
      above = stride;
    }
    if (row != panel_of(row) && rows % 8)
      return Lack{fmt::format("rows of '{}' in multiples of 8, or of at most 128 bytes", shared.name),
                  fmt::format("{} rows of {} bytes", rows, row)};
    return std::nullopt;
  }
  bool engine_can(const Site& site, const Copy& copy) const { return !engine_lacks(site, copy); }

  // The dimension of the shared tensor that meets the other side's contiguous dimension.
  std::optional<int> met_contiguous(const Use& use) const {
    return met_by(*use.shared, *use.other, contiguous_dim(program.tensor(use.other->tensor)));
  }

  Status solve(TensorId id) {
    const auto uses = uses_of(id);
    const Tensor& tensor = program.tensor(id);
    std::optional<int> engine_dim;
    const Use* engine = nullptr;
    const Use* matrix = nullptr;
    for (const Use& use : uses) {
      if (use.mma && (!matrix || (transposable(*matrix) && !transposable(use)))) matrix = &use;
      const auto* copy = std::get_if<Copy>(&use.site->statement->node);
      if (!copy || scope_of(*use.other) != Scope::global || !engine_can(*use.site, *copy)) continue;
      engine = &use;
      engine_dim = met_contiguous(use);
    }
    if (matrix || engine) return solve_panels(id, tensor, uses, engine, engine_dim, matrix);
    return solve_free(id, tensor, uses);
  }

  bool transposable(const Use& use) const {
    const auto choice = solution_.choices.find(use.site->statement);
    return choice != solution_.choices.end() && choice->second.instruction->transposable;
  }
  // "mma acc += a * b (gemm.tile:20)"
  std::string quoted(const Use& use) const {
    return fmt::format("{} ({})", print(program, *use.site->statement), place_of(*use.site->statement));
  }

  Status solve_panels(TensorId id, const Tensor& tensor, const std::vector<Use>& uses, const Use* engine,
                      std::optional<int> engine_dim, const Use* matrix) {
    const int contiguous = engine_dim.value_or(matrix ? matrix->k_dim : static_cast<int>(tensor.shape.size()) - 1);
    const Use& first = engine ? *engine : *matrix;  // that wants this dimension contiguous
    for (const Use& use : uses)
      if (use.mma && !transposable(use) && use.k_dim != contiguous)
        return fail({ErrorCode::kNoLayout,
                     fmt::format("shared tensor '{}': the matrix instruction and {} ask for different contiguous "
                                 "dimensions",
                                 tensor.name, engine ? "the copy engine" : "another one"),
                     place_of(*use.site->statement),
                     fmt::format("dimension {} (k) contiguous, for {}: {}", use.k_dim,
                                 solution_.choices.at(use.site->statement).instruction->name, quoted(use)),
                     fmt::format("dimension {} contiguous, by: {}", contiguous, quoted(first)),
                     "transpose the global operand first (a prepare or transpose program), or use a 16-bit type"});
    const std::int64_t bytes = bytes_of(tensor.dtype, tensor.shape[static_cast<std::size_t>(contiguous)]);
    if (const auto panel = static_cast<int>(panel_of(bytes))) {
      const auto layout = layout::panels(tensor.shape, contiguous, panel, bits_of(tensor.dtype));
      if (!layout) return fail(layout.error());
      solution_.shared[id] = *layout;
      const Use& by = matrix ? *matrix : *engine;
      solution_.reasons[id] = {by.site->statement,
                               fmt::format("{}-byte panels, as the {} reads them, contiguous along dimension {}", panel,
                                           matrix ? "matrix unit" : "copy engine", contiguous)};
      return ok();
    }
    return fail({ErrorCode::kNoLayout, fmt::format("shared tensor '{}' is too narrow for the matrix unit", tensor.name),
                 place_of(*first.site->statement),
                 fmt::format("dimension {} contiguous, of a multiple of 32 bytes, by: {}", contiguous, quoted(first)),
                 fmt::format("{}: {} bytes", text_of(tensor.shape), bytes), "use a wider tile"});
  }

  // No engine involved: try each dimension as the contiguous one, with the best swizzle for each; keep the cheapest.
  Status solve_free(TensorId id, const Tensor& tensor, const std::vector<Use>& uses) {
    double best_cost = -1;
    const int rank = static_cast<int>(tensor.shape.size());
    for (int contiguous = rank - 1; contiguous >= 0; --contiguous) {
      if (tensor.shape[static_cast<std::size_t>(contiguous)] % per_byte(tensor.dtype)) continue;
      MemoryLayout layout = dense_along(contiguous, tensor);
      const auto accesses = accesses_of(uses, layout, contiguous);
      if (tensor.pipeline >= 0 || rank == 2) layout.swizzle = choose_swizzle(accesses, layout);
      double cost = 0;
      for (const SharedAccess& access : accesses)
        cost += static_cast<double>(access.registers.values() * access.registers.threads()) * bits_of(tensor.dtype) / 8 /
                access.access_bytes * bank_conflict_ways(access.registers, layout, access.access_bytes);
      cost += memory_copy_cost(uses, contiguous);
      if (best_cost >= 0 && cost >= best_cost) continue;
      best_cost = cost, solution_.shared[id] = layout;
      solution_.reasons[id] = {uses.empty() ? nullptr : uses.front().site->statement,
                               fmt::format("the cheapest order and swizzle for its {} uses", uses.size())};
    }
    return ok();
  }

  std::vector<SharedAccess> accesses_of(const std::vector<Use>& uses, const MemoryLayout& layout, int contiguous) const {
    std::vector<SharedAccess> accesses;
    for (const Use& use : uses) {
      if (!use.mma && scope_of(*use.other) == Scope::global) {
        const auto met = met_contiguous(use);
        const int vector = met == contiguous ? vector_limit(program, bounds, *use.other, 16) : 1;
        const auto mapping = layout::coalesced(use.shared->extent, contiguous, vector, use.site->threads);
        if (vector > 1 && mapping) accesses.push_back({*mapping, vector * layout.element_bits / 8});
        continue;
      }
      if (use.mma || scope_of(*use.other) != Scope::reg) continue;
      const Tensor& registers = program.tensor(use.other->tensor);
      const TvLayout tv = seen_from(solution_.registers.at(use.other->tensor), registers.shape, use.shared->extent);
      const bool load = std::get<Copy>(use.site->statement->node).dst.tensor == use.other->tensor;
      const int bytes = layout.element_bits / 8;
      const auto c = static_cast<std::size_t>(contiguous);
      bool matrix = false;
      for (const bool transpose : {false, true}) {
        const Scope from = load ? Scope::shared : Scope::reg, to = load ? Scope::reg : Scope::shared;
        if (matrix || !row_of(capabilities, Method::matrix, from, to, transpose)) continue;
        if (registers.dtype != program.tensor(use.shared->tensor).dtype || !matrix_count(tv, layout, contiguous, transpose))
          continue;
        matrix = true;
        TvLayout rows{tv.tile, {}, {}};  // 8 rows of 16 bytes: one phase of a matrix access
        Coord down(tv.tile.size(), 0), along(tv.tile.size(), 0);
        down[1 - c] = 1;
        along[c] = 1;
        rows.thread.push_back({8, down});
        rows.value.push_back({16 / bytes, along});
        accesses.push_back({rows, 16});
      }
      if (const auto width = common_vector(tv, layout, 16) * layout.element_bits / 8; !matrix && width > 0)
        accesses.push_back({tv, static_cast<int>(width)});
    }
    return accesses;
  }

  // Copies between global and shared memory by threads: narrower accesses when the contiguous dimensions differ.
  double memory_copy_cost(const std::vector<Use>& uses, int contiguous) const {
    double cost = 0;
    for (const Use& use : uses) {
      if (use.mma || scope_of(*use.other) != Scope::global) continue;
      const auto elements = static_cast<double>(element_count(use.shared->extent));
      const bool same = met_contiguous(use) == contiguous;
      cost += 2 * elements / (same ? vector_limit(program, bounds, *use.other, 16) : 1);
    }
    return cost;
  }

  Status choose(const Site& site, const Copy& copy) {
    const Scope from = scope_of(copy.src), to = scope_of(copy.dst);
    if (from == Scope::shared && to == Scope::shared)
      return fail({ErrorCode::kNoInstruction, "no copy moves from shared to shared memory", place_of(*site.statement),
                   "a register tensor on a side", print(program, *site.statement),
                   "copy through a register tensor of the tile's shape"});
    if (from == Scope::reg && to == Scope::reg) return ok();
    if (from == Scope::reg || to == Scope::reg) {
      const Tile& memory = from == Scope::reg ? copy.dst : copy.src;
      const Tile& registers = from == Scope::reg ? copy.src : copy.dst;
      return scope_of(memory) == Scope::global ? choose_global(site, from, to, memory, registers)
                                               : choose_shared(site, from, to, memory, registers);
    }
    return choose_between(site, copy, from, to);
  }

  Status choose_global(const Site& site, Scope from, Scope to, const Tile& memory, const Tile& registers) {
    const Tensor& tensor = program.tensor(memory.tensor);
    const TvLayout tv =
        seen_from(solution_.registers.at(registers.tensor), program.tensor(registers.tensor).shape, memory.extent);
    MemoryLayout view;  // the global box as memory, to find common vectors
    view.element_bits = bits_of(tensor.dtype);
    for (std::size_t d = 0; d < tensor.shape.size(); ++d)
      view.dims.push_back({{memory.extent[d], tensor.strides[d] * memory.step_along(d)}});
    const auto limit = vector_limit(program, bounds, memory, 16);
    Choice choice{row_of(capabilities, Method::plain, from, to), 1, {}, "the widest vectors that lanes, strides and edges allow"};
    choice.vector = static_cast<int>(std::min<std::int64_t>(limit, common_vector(tv, view, 16)));
    solution_.choices[site.statement] = choice;
    return ok();
  }

  Status choose_shared(const Site& site, Scope from, Scope to, const Tile& memory, const Tile& registers) {
    const MemoryLayout& layout = solution_.shared.at(memory.tensor);
    const Tensor &tensor = program.tensor(memory.tensor), &other = program.tensor(registers.tensor);
    const TvLayout tv = seen_from(solution_.registers.at(registers.tensor), other.shape, memory.extent);
    const auto contiguous = static_cast<int>(contiguous_dim(layout, tensor));
    const bool remote = std::get<Copy>(site.statement->node).peer.has_value();  // by plain loads alone
    for (const bool transpose : {false, true}) {
      const Instruction* row = row_of(capabilities, Method::matrix, from, to, transpose);
      const int count = row && !remote && tensor.dtype == other.dtype ? matrix_count(tv, layout, contiguous, transpose) : 0;
      if (!count) continue;
      solution_.choices[site.statement] = {row, count, {}, "fragments that are matrices of 8 rows of 16 bytes"};
      return ok();
    }
    std::int64_t vector = tensor.dtype == other.dtype ? common_vector(tv, layout, 16) : 1;
    const auto& offset = memory.offset[static_cast<std::size_t>(contiguous)];
    while (vector > 1 && offset.known_divisor() % vector) vector /= 2;
    solution_.choices[site.statement] = {row_of(capabilities, Method::plain, from, to),
                                         static_cast<int>(vector),
                                         {},
                                         "the widest vectors that both layouts have in common"};
    return ok();
  }

  // Nothing but the copy engine signals the roles that wait for a slot.
  Error cannot_fill(const Site& site, const Lack& lack) const {
    std::string consumer;
    for (const Site& other : sites)
      if (const auto* consume = std::get_if<Consume>(&other.statement->node);
          consume && consume->pipeline == site.producing && consumer.empty())
        consumer = place_of(*other.statement);
    return {ErrorCode::kNoInstruction,
            fmt::format("no instruction of {} can fill pipeline '{}' from another role", capabilities.arch,
                        program.pipeline(site.producing).name),
            place_of(*site.statement),
            fmt::format("for the copy engine: {}", lack.expected),
            fmt::format("{}: {}; another role consumes the slot ({})", print(program, *site.statement), lack.found, consumer),
            "pad or copy the tensor first, or produce and consume in one thread of control: its threads copy themselves"};
  }

  Status choose_between(const Site& site, const Copy& copy, Scope from, Scope to) {
    const bool load = from == Scope::global;
    const Tile &global = load ? copy.src : copy.dst, &shared = load ? copy.dst : copy.src;
    const Tensor& tensor = program.tensor(global.tensor);
    const MemoryLayout& layout = solution_.shared.at(shared.tensor);
    const bool between_roles = site.producing >= 0 && is_between_roles(sites, site.producing);
    const auto met = met_by(shared, global, contiguous_dim(tensor));
    const bool aligned =
        met && !layout.dims[static_cast<std::size_t>(*met)].empty() && layout.dims[static_cast<std::size_t>(*met)][0].stride == 1;
    if (engine_can(site, copy) && aligned && (load ? between_roles : true)) {
      solution_.choices[site.statement] = {
          row_of(capabilities, Method::tensor_copy, from, to), 1, {}, "strides, start and width in steps of 16 bytes"};
      return ok();
    }
    if (between_roles)
      return fail(cannot_fill(site, engine_lacks(site, copy)
                                        .value_or(Lack{"the slot contiguous along the dimension that the tensor is",
                                                       fmt::format("'{}' is not", program.tensor(shared.tensor).name)})));
    // Threads copy: spread vectors over them.
    const auto mine = wide_dims(shared.extent);
    std::vector<std::int64_t> extent;
    for (const int d : mine) extent.push_back(shared.extent[static_cast<std::size_t>(d)]);
    int position = static_cast<int>(extent.size()) - 1;
    for (std::size_t i = 0; i < mine.size(); ++i)
      if (met && mine[i] == *met) position = static_cast<int>(i);
    if (extent.empty()) extent = {1}, position = 0;
    int vector = aligned ? vector_limit(program, bounds, global, 16) : 1;
    while (vector > 1 && shared.offset[static_cast<std::size_t>(*met)].known_divisor() % vector) vector /= 2;
    const bool async = capabilities.async_copy && load && site.producing >= 0 && copy.fill == 0 &&
                       bytes_of(tensor.dtype, vector) >= 4 && tensor.dtype == program.tensor(shared.tensor).dtype;
    for (; vector >= 1; vector /= 2) {
      auto mapping = layout::coalesced(extent, position, vector, site.threads);
      if (!mapping && vector > 1) continue;
      if (!mapping) return fail(not_spread(program, site, shared.tensor));
      if (common_vector(seen_from(*mapping, extent, shared.extent), layout, 16) < vector) continue;
      if (!meets_whole(*mapping, extent, global.extent)) continue;
      const bool wide_enough = bytes_of(tensor.dtype, vector) >= 4;
      solution_.choices[site.statement] = {
          async && wide_enough ? row_of(capabilities, Method::async, from, to) : nullptr, vector, std::move(*mapping),
          async ? "a fill by the threads that use it" : "through registers: no asynchronous copy fits"};
      return ok();
    }
    return ok();
  }

  Status check_bytes(const Site& site, const Tile& tile, const Choice& choice) const {
    const Tensor& tensor = program.tensor(tile.tensor);
    const int least = per_byte(tensor.dtype);
    const bool engine = choice.instruction && choice.instruction->method == Method::tensor_copy;
    if (engine || choice.vector >= least) return ok();
    return fail({ErrorCode::kNoLayout, "an access would move less than a byte", place_of(*site.statement),
                 fmt::format("{} neighbours of {} in one thread", least, name_of(tensor.dtype)), print(program, *site.statement),
                 "let the dimension that is contiguous in memory run fastest, or copy to a wider type first"});
  }

  // Within warps where that takes less than a way through shared memory, whose layout suits the writers and the readers.
  Status choose_rearrange(const Site& site, const Rearrange& node) {
    constexpr double kBarriers = 16;  // of the way there and back, in shuffles
    const Tensor& tensor = program.tensor(node.dst);
    const int bits = bits_of(tensor.dtype), rank = static_cast<int>(tensor.shape.size());
    const TvLayout sides[] = {flipped(solution_.registers.at(node.src), node.transpose), solution_.registers.at(node.dst)};
    Choice& choice = solution_.choices[site.statement];
    double best = -1;
    for (int contiguous = rank - 1; contiguous >= 0; --contiguous) {
      MemoryLayout layout = dense_along(contiguous, tensor);
      std::vector<SharedAccess> accesses;
      for (const TvLayout& side : sides)
        if (const auto bytes = common_vector(side, layout, 16) * bits / 8; bytes > 0)
          accesses.push_back({side, static_cast<int>(bytes)});
      if (accesses.size() < 2) continue;
      layout.swizzle = choose_swizzle(accesses, layout);
      double cost = kBarriers;
      for (const auto& [side, bytes] : accesses)
        cost += static_cast<double>(side.values() * bits) / std::min(32, bytes * 8) * bank_conflict_ways(side, layout, bytes);
      if (best < 0 || cost < best) best = cost, choice.scratch = layout, choice.vector = accesses[1].access_bytes * 8 / bits;
    }
    const auto exchange = exchange_of(sides[0], sides[1], bits);
    if (exchange && (best < 0 || static_cast<double>(exchange->shuffles()) <= best))
      choice.scratch = {}, choice.vector = exchange->unit;
    else if (best < 0) choice.vector = 0;
    choice.why = choice.scratch.dims.empty() ? "no element changes warps, and lanes exchange few"
                                             : "a way through shared memory takes less than exchanges between lanes";
    return check_bytes(site, whole(program, node.dst), choice);
  }

  Solution& solution_;
};
}  // namespace
Status solve_shared(const Question& question, Solution& solution) { return SharedSolver(question, solution).run(); }

std::size_t contiguous_dim(const MemoryLayout& layout, const Tensor& tensor) {
  std::size_t contiguous = 0;
  for (std::size_t d = 0; d < layout.dims.size(); ++d)
    if (!layout.dims[d].empty() && layout.dims[d][0].stride == 1 && tensor.shape[d] > 1) contiguous = d;
  return contiguous;
}

TvLayout seen_from(const TvLayout& registers, const std::vector<std::int64_t>& register_extent,
                   const std::vector<std::int64_t>& other_extent) {
  TvLayout out{other_extent, {}, {}};
  const auto met = tile::meetings(register_extent, other_extent).value_or(std::vector<tile::Meeting>());
  const auto at = [](auto& list, int i) -> auto& { return list[static_cast<std::size_t>(i)]; };
  const auto mode_seen = [&](TvMode mode, std::vector<TvMode>& to) {
    Coord step(other_extent.size(), 0);
    for (const tile::Meeting& m : met) {
      std::int64_t below = 1;  // of several dimensions of mine
      for (std::size_t i = m.a.size(); i-- > 1; below *= at(register_extent, m.a[i]))
        at(step, m.b[0]) += at(mode.step, m.a[i]) * below;
      std::int64_t left = at(mode.step, m.a[0]);
      if (m.b.size() == 1) at(step, m.b[0]) += left * below;
      // One of mine meets several: the mode's digits fall into them, the fastest first.
      for (std::size_t i = m.b.size(); m.b.size() > 1 && left > 0 && i-- > 0;) {
        const std::int64_t room = at(other_extent, m.b[i]);
        if (i > 0 && left % room == 0) {
          left /= room;
          continue;
        }
        at(step, m.b[i]) = left;
        const std::int64_t here = (room + left - 1) / left;
        if (i == 0 || mode.extent <= here) break;
        to.push_back({here, step});
        step.assign(step.size(), 0);
        mode.extent /= here, left = 1;
      }
    }
    to.push_back({mode.extent, std::move(step)});
  };
  for (const TvMode& mode : registers.thread) mode_seen(mode, out.thread);
  for (const TvMode& mode : registers.value) mode_seen(mode, out.value);
  return out;
}

bool meets_whole(const TvLayout& registers, const std::vector<std::int64_t>& register_extent,
                 const std::vector<std::int64_t>& other_extent) {
  const bool alike = wide_dims(register_extent).size() == wide_dims(other_extent).size();
  return alike || seen_from(registers, register_extent, other_extent).is_exact();
}

int matrix_count(const TvLayout& registers, const MemoryLayout& memory, int contiguous, bool transpose) {
  const int bytes = memory.element_bits / 8;
  if (registers.rank() != 2 || bytes < 1 || bytes > 4 || (transpose && bytes != 2) || registers.thread.size() < 2) return 0;
  const auto c = static_cast<std::size_t>(contiguous), o = 1 - c;
  auto is = [&](const TvMode& mode, std::int64_t extent, std::size_t dim, std::int64_t step) {
    return mode.extent == extent && mode.step[dim] == step && mode.step[1 - dim] == 0;
  };
  const std::int64_t unit = 4 / bytes;  // elements in 32 bits
  const std::size_t pair = unit > 1 ? 1 : 0;
  if (pair && (registers.value.empty() || !is(registers.value[0], unit, transpose ? o : c, 1))) return 0;
  if (!is(registers.thread[0], 4, transpose ? o : c, unit) || !is(registers.thread[1], 8, transpose ? c : o, 1)) return 0;
  // Rows of 16 bytes must stay whole: nothing else may step along the contiguous dimension by less than a row.
  const std::int64_t row = 16 / bytes;
  if (memory.dims[c].empty() || memory.dims[c][0].stride != 1 || memory.dims[c][0].extent % row) return 0;
  if (memory.swizzle.bits && memory.swizzle.base < 4) return 0;
  for (std::size_t i = pair; i < registers.value.size(); ++i)
    if (registers.value[i].step[c] % row) return 0;
  for (std::size_t i = 2; i < registers.thread.size(); ++i)
    if (registers.thread[i].step[c] % row) return 0;
  const std::int64_t first = registers.value.size() > pair ? registers.value[pair].extent : 1;
  const std::int64_t second = registers.value.size() > pair + 1 ? registers.value[pair + 1].extent : 1;
  if (first % 4 == 0 || (first == 2 && second % 2 == 0)) return 4;
  return first % 2 == 0 ? 2 : 1;
}
}  // namespace warploom::synth
