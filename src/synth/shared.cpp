#include "synth/solve.h"
#include "tile/print.h"

namespace warploom::synth {
namespace {
using layout::Coord, layout::MemoryLayout, layout::SharedAccess, layout::TvMode;

// The widest panel that divides rows of so many bytes; 0 where none does.
int64_t panel_of(int64_t bytes) {
  return bytes % 128 == 0 ? 128 : bytes % 64 == 0 ? 64 : bytes % 32 == 0 ? 32 : 0;
}

// How many matrices of 8 rows of 16 bytes one matrix load or store can move for this register
// layout (1, 2 or 4), 0 when it does not have the shape. Plain form: lane%4 holds 4 bytes along the
// contiguous dimension, lane/4 the row. Transposed (2-byte elements only): lane%4 holds two rows,
// lane/4 the column.
int matrix_count(const TvLayout& registers, const MemoryLayout& memory, size_t c, bool transpose) {
  const int bytes = memory.element_bits / 8;
  if (registers.tile.size() != 2 || bytes < 1 || bytes > 4 || (transpose && bytes != 2) ||
      registers.thread.size() < 2)
    return 0;
  const size_t o = 1 - c;
  const auto is = [&](const TvMode& mode, int64_t extent, size_t dim, int64_t step) {
    return mode.extent == extent && mode.step[dim] == step && mode.step[1 - dim] == 0;
  };
  const int64_t unit = 4 / bytes;  // elements in 32 bits
  const size_t pair = unit > 1 ? 1 : 0;
  if (pair && (registers.value.empty() || !is(registers.value[0], unit, transpose ? o : c, 1)))
    return 0;
  if (!is(registers.thread[0], 4, transpose ? o : c, unit) ||
      !is(registers.thread[1], 8, transpose ? c : o, 1))
    return 0;
  // Rows of 16 bytes must stay whole: nothing else may step along the contiguous dimension by less
  // than a row.
  const int64_t row = 16 / bytes;
  if (memory.dims[c].empty() || memory.dims[c][0].stride != 1 || memory.dims[c][0].extent % row)
    return 0;
  if (memory.swizzle.bits && memory.swizzle.base < 4) return 0;
  for (size_t i = pair; i < registers.value.size(); ++i)
    if (registers.value[i].step[c] % row) return 0;
  for (size_t i = 2; i < registers.thread.size(); ++i)
    if (registers.thread[i].step[c] % row) return 0;
  const int64_t first = registers.value.size() > pair ? registers.value[pair].extent : 1;
  const int64_t second = registers.value.size() > pair + 1 ? registers.value[pair + 1].extent : 1;
  if (first % 4 == 0 || (first == 2 && second % 2 == 0)) return 4;
  return first % 2 == 0 ? 2 : 1;
}

// A use of a shared tensor by one statement.
struct Use {
  const Site* site;
  const Tile* shared;           // the box of the shared tensor
  const Tile* other = nullptr;  // copies: the other side
  const Mma* mma = nullptr;
  size_t k_dim = 0;  // mma: which dimension of the shared tensor is k
};

class SharedSolver : SynthesisContext {
 public:
  SharedSolver(const SynthesisContext& question, Solution& solution)
      : SynthesisContext(question), solution_(solution) {}

  Status run() {
    for (TensorId id = 0; id < static_cast<TensorId>(program.tensors.size()); ++id)
      if (program.tensor(id).scope == Scope::shared) WARPLOOM_CHECK(solve(id));
    for (const Site& site : sites) {
      if (const auto* copy = site.statement->as<Copy>()) {
        WARPLOOM_CHECK(choose(site, *copy, sides_of(program, *copy)));
      }
      if (const auto* node = site.statement->as<ConvertLayout>())
        WARPLOOM_CHECK(choose_rearrange(site, *node));
    }
    return ok();
  }

 private:
  Scope scope_of(const Tile& tile) const { return program.tensor(tile.tensor).scope; }

  // The row that moves such a copy; null where the target has none.
  const Instruction* row_of(Method method, const Copy& copy, bool transpose = false) const {
    for (const Instruction& row : target::instructions_of(capabilities.arch))
      if (row.m == 0 && row.method == method && row.from == scope_of(copy.src) &&
          row.to == scope_of(copy.dst) && row.transpose == transpose)
        return &row;
    return nullptr;
  }

  std::vector<Use> uses_of(TensorId id) const {
    std::vector<Use> uses;
    for (const Site& site : sites) {
      if (const auto* copy = site.statement->as<Copy>()) {
        if (copy->src.tensor == id) uses.push_back({&site, &copy->src, &copy->dst});
        if (copy->dst.tensor == id) uses.push_back({&site, &copy->dst, &copy->src});
      } else if (const auto* mma = site.statement->as<Mma>()) {
        if (mma->a.tensor == id)
          uses.push_back({&site, &mma->a, nullptr, mma, mma->transpose_a ? 0u : 1u});
        if (mma->b.tensor == id)
          uses.push_back({&site, &mma->b, nullptr, mma, mma->transpose_b ? 1u : 0u});
      }
    }
    return uses;
  }

  // What the copy engine asks of a copy and does not get; nothing: it can move this box. It wants
  // strides, base and the box's start in its row in multiples of 16 bytes, fills with zeros alone,
  // and all of a shared matrix, whose panels begin where their swizzle does.
  struct Unmet {
    std::string expected;
    std::string found;
  };

  std::optional<Unmet> engine_lacks(const Site& site, const Copy& copy) const {
    const Sides sides = sides_of(program, copy);
    const Tile& global = *sides.global;
    const Tile& slot = *sides.shared;
    const Tensor& tensor = program.tensor(global.tensor);
    const Tensor& shared = program.tensor(slot.tensor);
    const bool load = sides.load;
    const bool converts = tensor.dtype == Dtype::f32 && shared.dtype == Dtype::tf32 && load;
    const auto contiguous = contiguous_dim(tensor);
    if (!capabilities.tensor_copy) return Unmet{"a target that has one", capabilities.arch};
    if (global.lookup >= 0)
      return Unmet{"a box that is not gathered", fmt::format("'{}' gathered", tensor.name)};
    if (!global.step.empty())
      return Unmet{"a box of neighbours",
                   fmt::format("steps {} of '{}'", text_of(global.step), tensor.name)};
    if (!contiguous)
      return Unmet{fmt::format("a dimension of '{}' whose elements are neighbours", tensor.name),
                   fmt::format("strides {}", text_of(tensor.strides))};
    if (tensor.dtype != shared.dtype && !converts)
      return Unmet{"one type on both sides",
                   fmt::format("'{}' {} and '{}' {}", tensor.name, name_of(tensor.dtype),
                               shared.name, name_of(shared.dtype))};
    if (copy.combine && *copy.combine != ReduceOp::sum)
      return Unmet{"a sum", *copy.combine == ReduceOp::max ? "a maximum" : "a minimum"};
    if (load && copy.fill != 0) return Unmet{"a fill of 0", fmt::format("{}", copy.fill)};
    if (load && (site.producing < 0 || !is_between_roles(sites, site.producing)))
      return Unmet{"a pipeline between roles", "one thread of control"};
    int rank = 0;
    for (size_t d = 0; d < tensor.shape.size(); ++d) {
      if (tensor.shape[d] == 1 && !bounds.may_exceed(program, global, d)) continue;
      ++rank;
      const int64_t stride = bytes_of(tensor.dtype, tensor.strides[d]);
      if (d != *contiguous && stride % 16)
        return Unmet{
            fmt::format("dimension {} of '{}' in steps of a multiple of 16 bytes", d, tensor.name),
            fmt::format("{} bytes", stride)};
    }
    if (rank > 5)
      return Unmet{fmt::format("at most 5 dimensions of '{}'", tensor.name),
                   fmt::format("{} dimensions", rank)};
    const size_t inner = *contiguous;
    const auto extent = bytes_of(tensor.dtype, global.extent[inner]);
    const auto start = bytes_of(tensor.dtype, global.offset[inner].known_divisor());
    const bool windows =
        has_windows(slot.tensor);  // rows follow each other as they are, not cut into panels
    const int unit = windows ? 16 : 32;
    if (extent % unit)
      return Unmet{
          fmt::format("a multiple of {} bytes of dimension {} of '{}'", unit, inner, tensor.name),
          fmt::format("{} bytes", extent)};
    if (start % 16)
      return Unmet{fmt::format("a start in dimension {} of '{}' at a multiple of 16 bytes", inner,
                               tensor.name),
                   fmt::format("{}, multiples of {} bytes", global.offset[inner].text(), start)};
    const auto met = met_by(slot, global, contiguous);
    const auto row = met ? bytes_of(shared.dtype, shared.shape[*met]) : 0;
    if (windows && (global.extent[inner] > 256 || met.value_or(0) + 1 != shared.shape.size()))
      return Unmet{"rows of at most 256 elements", text_of(shared.shape)};
    if (row == 0 || row % unit)
      return Unmet{fmt::format("rows of '{}' of a multiple of {} bytes", shared.name, unit),
                   fmt::format("{} bytes", row)};
    if (shared.shape.size() != 2 || slot.extent != shared.shape)
      return Unmet{fmt::format("all of '{}', of two dimensions", shared.name),
                   text_of(slot.extent)};
    if (shared.shape[*met] != global.extent[inner])
      return Unmet{fmt::format("rows of '{}' of one dimension of '{}'", shared.name, tensor.name),
                   fmt::format("{} of {}", global.extent[inner], shared.shape[*met])};
    const int64_t rows = shared.shape[1 - *met];
    int64_t above = INT64_MAX;  // rows of several dimensions: one box, slower dimensions first
    for (const size_t d : wide_dims(global.extent)) {
      const int64_t stride = d == inner ? above : tensor.strides[d];
      if (wide_dims(global.extent).size() > 2 &&
          (stride > above || rows > 256 || !copy.multicast.empty()))
        return Unmet{
            fmt::format("at most 256 rows of '{}' in the order of its strides, for one block",
                        tensor.name),
            fmt::format("{} rows {}", rows, text_of(global.extent))};
      above = stride;
    }
    if (!windows && row != panel_of(row) && rows % 8)
      return Unmet{
          fmt::format("rows of '{}' in multiples of 8, or of at most 128 bytes", shared.name),
          fmt::format("{} rows of {} bytes", rows, row)};
    return std::nullopt;
  }

  // The dimension of the shared tensor that meets the other side's contiguous dimension.
  std::optional<size_t> met_contiguous(const Use& use) const {
    return met_by(*use.shared, *use.other, contiguous_dim(program.tensor(use.other->tensor)));
  }

  // Row by row, so that windows are sums of strides.
  bool has_windows(TensorId id) const {
    return std::ranges::any_of(program.tensors,
                               [&](const Tensor& tensor) { return tensor.windows_of == id; });
  }

  Status solve(TensorId id) {
    const auto uses = uses_of(id);
    const Tensor& tensor = program.tensor(id);
    if (has_windows(id) || tensor.windows_of >= 0) {
      MemoryLayout& layout = solution_.shared[id] = {{}, {}, bits_of(tensor.dtype)};
      const auto strides = tensor.strides.empty() ? dense_strides(tensor.shape) : tensor.strides;
      for (size_t d = 0; d < strides.size(); ++d)
        layout.dims.push_back({{tensor.shape[d], strides[d]}});
      solution_.reasons[id] = {uses.empty() ? kNoStatement : uses.front().site->statement->id,
                               "row by row, as windows count"};
      return ok();
    }
    const Use* engine = nullptr;
    const Use* matrix = nullptr;
    for (const Use& use : uses) {
      if (use.mma && (!matrix || (matrix_of(*matrix).transposable && !matrix_of(use).transposable)))
        matrix = &use;
      const auto* copy = use.site->statement->as<Copy>();
      if (!copy || scope_of(*use.other) != Scope::global || engine_lacks(*use.site, *copy))
        continue;
      engine = &use;
    }
    if (matrix || engine) return solve_panels(id, tensor, uses, engine, matrix);
    return solve_free(id, tensor, uses);
  }

  const Instruction& matrix_of(const Use& use) const {
    return *solution_.choices.at(use.site->statement->id).instruction;
  }

  // "mma acc += a * b (gemm.tile:20)"
  std::string quoted(const Use& use) const {
    return fmt::format("{} ({})", print(program, *use.site->statement),
                       place_of(*use.site->statement));
  }

  Status solve_panels(TensorId id, const Tensor& tensor, const std::vector<Use>& uses,
                      const Use* engine, const Use* matrix) {
    const size_t contiguous = engine ? *met_contiguous(*engine) : matrix->k_dim;
    const Use& first = engine ? *engine : *matrix;  // that wants this dimension contiguous
    constexpr int64_t kPattern = 64;  // elements of 16 bits that a pattern goes on for, in a
                                      // matrix that is not contiguous along k
    for (const Use& use : uses) {
      if (!use.mma || use.k_dim == contiguous) continue;
      if (use.shared->offset[contiguous].known_divisor() % kPattern != 0)
        return fail(
            {ErrorCode::kNoLayout,
             fmt::format("shared tensor '{}': a tile begins within a pattern of its layout",
                         tensor.name),
             place_of(*use.site->statement),
             fmt::format("a start at multiples of {} along dimension {}", kPattern, contiguous),
             quoted(use), "let tiles begin there, or the tensor be contiguous along k"});
      if (!matrix_of(use).transposable)
        return fail(
            {ErrorCode::kNoLayout,
             fmt::format(
                 "shared tensor '{}': the matrix instruction and {} ask for different contiguous "
                 "dimensions",
                 tensor.name, engine ? "the copy engine" : "another one"),
             place_of(*use.site->statement),
             fmt::format("dimension {} (k) contiguous, for {}: {}", use.k_dim, matrix_of(use).name,
                         quoted(use)),
             fmt::format("dimension {} contiguous, by: {}", contiguous, quoted(first)),
             "transpose the global operand first (a prepare or transpose program), or use a 16-bit "
             "type"});
    }
    const int64_t bytes = bytes_of(tensor.dtype, tensor.shape[contiguous]);
    if (const auto panel = static_cast<int>(panel_of(bytes))) {
      solution_.shared[id] = layout::panels(tensor.shape, contiguous, panel, bits_of(tensor.dtype));
      const Use& by = matrix ? *matrix : *engine;
      solution_.reasons[id] = {
          by.site->statement->id,
          fmt::format("{}-byte panels, as the {} reads them, contiguous along dimension {}", panel,
                      matrix ? "matrix unit" : "copy engine", contiguous)};
      return ok();
    }
    return fail({ErrorCode::kNoLayout,
                 fmt::format("shared tensor '{}' is too narrow for the matrix unit", tensor.name),
                 place_of(*first.site->statement),
                 fmt::format("dimension {} contiguous, of a multiple of 32 bytes, by: {}",
                             contiguous, quoted(first)),
                 fmt::format("{}: {} bytes", text_of(tensor.shape), bytes), "use a wider tile"});
  }

  // Nothing but copies by threads: try each dimension as the contiguous one, with the best swizzle
  // for each; keep the cheapest.
  Status solve_free(TensorId id, const Tensor& tensor, const std::vector<Use>& uses) {
    double best_cost = -1;
    const size_t rank = tensor.shape.size();
    for (size_t contiguous = rank; contiguous-- > 0;) {
      if (tensor.shape[contiguous] % per_byte(tensor.dtype)) continue;
      MemoryLayout layout = layout::dense(tensor.shape, contiguous, bits_of(tensor.dtype));
      double cost = 0;
      const auto accesses = accesses_of(uses, layout, contiguous, cost);
      if (tensor.pipeline >= 0 || rank == 2) layout.swizzle = choose_swizzle(accesses, layout);
      for (const SharedAccess& access : accesses)
        cost += static_cast<double>(access.registers.values() * access.registers.threads()) *
                bits_of(tensor.dtype) / 8 / access.access_bytes *
                bank_conflict_ways(access.registers, layout, access.access_bytes);
      if (best_cost >= 0 && cost >= best_cost) continue;
      best_cost = cost;
      solution_.shared[id] = layout;
      solution_.reasons[id] = {
          uses.empty() ? kNoStatement : uses.front().site->statement->id,
          fmt::format("the cheapest order and swizzle for its {} uses", uses.size())};
    }
    return ok();
  }

  // Adds to `cost` that of the global side where threads copy: narrower accesses when the
  // contiguous dimensions differ.
  std::vector<SharedAccess> accesses_of(const std::vector<Use>& uses, const MemoryLayout& layout,
                                        size_t contiguous, double& cost) const {
    std::vector<SharedAccess> accesses;
    for (const Use& use : uses) {
      if (scope_of(*use.other) == Scope::global) {
        const size_t along = met_contiguous(use).value_or(use.shared->extent.size() -
                                                          1);  // as choose_between() takes it
        const int vector = along == contiguous ? vector_limit(program, bounds, *use.other) : 1;
        cost += 2 * static_cast<double>(element_count(use.shared->extent)) / vector;
        const auto mapping =
            layout::coalesced(use.shared->extent, along, vector, use.site->threads);
        if (mapping && vector * layout.element_bits >= 8)
          accesses.push_back({*mapping, vector * layout.element_bits / 8});
        continue;
      }
      if (scope_of(*use.other) != Scope::reg) continue;
      const TvLayout tv = seen_from(solution_.registers.at(use.other->tensor), use.shared->extent);
      const bool matrix =
          matrix_row(std::get<Copy>(use.site->statement->node), tv, layout, contiguous).first !=
          nullptr;
      if (matrix) {  // 8 rows of 16 bytes: one phase of a matrix access
        Coord down(tv.tile.size(), 0);
        Coord along = down;
        down[1 - contiguous] = along[contiguous] = 1;
        accesses.push_back({{tv.tile, {{8, down}}, {{128 / layout.element_bits, along}}}, 16});
      }
      if (const auto width = common_vector(tv, layout, 16) * layout.element_bits / 8;
          !matrix && width > 0)
        accesses.push_back({tv, static_cast<int>(width)});
    }
    return accesses;
  }

  // The instruction that moves matrices of 16-byte rows for such a copy, and how many at once; null
  // where none does.
  std::pair<const Instruction*, int> matrix_row(const Copy& copy, const TvLayout& tv,
                                                const MemoryLayout& layout,
                                                size_t contiguous) const {
    const bool one_type =
        program.tensor(copy.src.tensor).dtype == program.tensor(copy.dst.tensor).dtype;
    for (const bool transpose : {false, true})
      if (const Instruction* row = row_of(Method::matrix, copy, transpose);
          row && one_type && !copy.peer)
        if (const int count = matrix_count(tv, layout, contiguous, transpose)) return {row, count};
    return {};
  }

  Status choose(const Site& site, const Copy& copy, const Sides& sides) {
    if (!sides.global && !sides.registers)
      return fail({ErrorCode::kNoInstruction, "no copy moves from shared to shared memory",
                   place_of(*site.statement), "a register tensor on a side",
                   print(program, *site.statement),
                   "copy through a register tensor of the tile's shape"});
    if (!sides.global && !sides.shared) return ok();
    InstructionChoice& choice = solution_.choices[site.statement->id];
    if (sides.registers)
      choose_vectors(copy, sides, choice);
    else
      WARPLOOM_CHECK(choose_between(site, copy, sides, choice));
    return check_bytes(site, copy.src, choice);
  }

  // Between registers and memory.
  void choose_vectors(const Copy& copy, const Sides& sides, InstructionChoice& choice) const {
    const Tile& memory = sides.global ? *sides.global : *sides.shared;
    const Tile& side = *sides.registers;
    const Tensor& tensor = program.tensor(memory.tensor);
    const Tensor& other = program.tensor(side.tensor);
    const TvLayout tv = seen_from(solution_.registers.at(side.tensor), memory.extent);
    choice.instruction = row_of(Method::plain, copy);
    if (sides.global) {
      MemoryLayout view;  // the box as memory, to find common vectors
      view.element_bits = bits_of(tensor.dtype);
      for (size_t d = 0; d < tensor.shape.size(); ++d)
        view.dims.push_back({{memory.extent[d], tensor.strides[d] * memory.step_along(d)}});
      if (tensor.packed) view = solution_.packed.at(memory.tensor);
      const int64_t limit =
          tensor.packed ? element_count(memory.extent) : vector_limit(program, bounds, memory);
      choice.vector = static_cast<int>(std::min(limit, common_vector(tv, view, 16)));
      choice.why = "the widest vectors that lanes, strides and edges allow";
      return;
    }
    const MemoryLayout& layout = solution_.shared.at(memory.tensor);
    const size_t contiguous = contiguous_dim(layout, tensor);
    if (const auto [row, count] = matrix_row(copy, tv, layout, contiguous); row) {
      choice = {row, count, {}, "fragments that are matrices of 8 rows of 16 bytes"};
      return;
    }
    if (tensor.dtype == other.dtype)
      choice.vector = static_cast<int>(common_vector(tv, layout, 16));
    while (choice.vector > 1 && memory.offset[contiguous].known_divisor() % choice.vector)
      choice.vector /= 2;
    choice.why = "the widest vectors that both layouts have in common";
  }

  // Nothing but the copy engine signals the roles that wait for a slot.
  tl::unexpected<Error> cannot_fill(const Site& site, const Unmet& lack) const {
    std::string consumer;
    for (const Site& other : sites)
      if (const auto* consume = other.statement->as<Consume>();
          consume && consume->pipeline == site.producing && consumer.empty())
        consumer = place_of(*other.statement);
    return fail({ErrorCode::kNoInstruction,
                 fmt::format("no instruction of {} can fill pipeline '{}' from another role",
                             capabilities.arch, program.pipeline(site.producing).name),
                 place_of(*site.statement), fmt::format("for the copy engine: {}", lack.expected),
                 fmt::format("{}: {}; another role consumes the slot ({})",
                             print(program, *site.statement), lack.found, consumer),
                 "pad or copy the tensor first, or produce and consume in one thread of control: "
                 "its threads copy themselves"});
  }

  Status choose_between(const Site& site, const Copy& copy, const Sides& sides,
                        InstructionChoice& choice) const {
    const Tile& global = *sides.global;
    const Tile& shared = *sides.shared;
    const Tensor& tensor = program.tensor(global.tensor);
    const MemoryLayout& layout = solution_.shared.at(shared.tensor);
    const auto met = met_by(shared, global, contiguous_dim(tensor));
    const bool aligned = met && !layout.dims[*met].empty() && layout.dims[*met][0].stride == 1;
    auto lack = engine_lacks(site, copy);
    if (!lack && !aligned)
      lack = Unmet{"the slot contiguous along the dimension that the tensor is",
                   fmt::format("'{}' is not", program.tensor(shared.tensor).name)};
    if (!lack) {
      choice = {row_of(Method::tensor_copy, copy),
                1,
                {},
                "strides, start and width in steps of 16 bytes"};
      return ok();
    }
    if (site.producing >= 0 && is_between_roles(sites, site.producing))
      return cannot_fill(site, *lack);
    // Threads copy: spread vectors over them.
    int vector = aligned ? vector_limit(program, bounds, global) : 1;
    while (vector > 1 && shared.offset[*met].known_divisor() % vector) vector /= 2;
    const auto is_async = [&] {
      return capabilities.async_copy && sides.load && site.producing >= 0 && copy.fill == 0 &&
             bytes_of(tensor.dtype, vector) >= 4 &&
             tensor.dtype == program.tensor(shared.tensor).dtype;
    };
    const char* const why = is_async() ? "a fill by the threads that use it"
                                       : "through registers: no asynchronous copy fits";
    for (; vector >= 1; vector /= 2) {
      auto mapping = layout::coalesced(shared.extent, met.value_or(shared.extent.size() - 1),
                                       vector, site.threads);
      if (!mapping || common_vector(*mapping, layout, 16) < vector) continue;
      if (!meets_whole(*mapping, global.extent)) continue;
      choice = {is_async() ? row_of(Method::async, copy) : nullptr, vector, std::move(*mapping),
                why};
      return ok();
    }
    return fail(not_spread(program, site, shared.tensor));
  }

  Status check_bytes(const Site& site, const Tile& tile, const InstructionChoice& choice) const {
    const Tensor& tensor = program.tensor(tile.tensor);
    const int least = per_byte(tensor.dtype);
    if (choice.by(Method::tensor_copy) || choice.vector >= least) return ok();
    return fail({ErrorCode::kNoLayout, "an access would move less than a byte",
                 place_of(*site.statement),
                 fmt::format("{} neighbours of {} in one thread", least, name_of(tensor.dtype)),
                 print(program, *site.statement),
                 "let the dimension that is contiguous in memory run fastest, or copy to a wider "
                 "type first"});
  }

  // Within warps where that takes less than a way through shared memory, whose layout suits the
  // writers and the readers.
  Status choose_rearrange(const Site& site, const ConvertLayout& node) {
    constexpr double kBarriers = 16;  // of the way there and back, in shuffles
    const Tensor& tensor = program.tensor(node.dst);
    const int bits = bits_of(tensor.dtype);
    const TvLayout sides[] = {flipped(solution_.registers.at(node.src), node.transpose),
                              solution_.registers.at(node.dst)};
    InstructionChoice& choice = solution_.choices[site.statement->id];
    double best = -1;
    for (size_t contiguous = tensor.shape.size(); contiguous-- > 0;) {
      MemoryLayout layout = layout::dense(tensor.shape, contiguous, bits);
      std::vector<SharedAccess> accesses;
      for (const TvLayout& side : sides)
        if (const auto bytes = common_vector(side, layout, 16) * bits / 8; bytes > 0)
          accesses.push_back({side, static_cast<int>(bytes)});
      if (accesses.size() < 2) continue;
      layout.swizzle = choose_swizzle(accesses, layout);
      double cost = kBarriers;
      for (const auto& [side, bytes] : accesses)
        cost += static_cast<double>(side.values() * bits) / std::min(32, bytes * 8) *
                bank_conflict_ways(side, layout, bytes);
      if (best < 0 || cost < best) {
        best = cost;
        choice.scratch = layout;
        choice.vector = accesses[1].access_bytes * 8 / bits;
      }
    }
    const auto exchange = exchange_of(sides[0], sides[1], bits);
    if (exchange && (best < 0 || static_cast<double>(exchange->shuffles()) <= best)) {
      choice.scratch = {};
      choice.vector = exchange->unit;
    } else if (best < 0)
      choice.vector = 0;
    choice.why = choice.scratch.dims.empty()
                     ? "no element changes warps, and lanes exchange few"
                     : "a way through shared memory takes less than exchanges between lanes";
    return check_bytes(site, whole(program, node.dst), choice);
  }

  Solution& solution_;
};
}  // namespace

Status solve_shared(const SynthesisContext& question, Solution& solution) {
  return SharedSolver(question, solution).run();
}

size_t contiguous_dim(const MemoryLayout& layout, const Tensor& tensor) {
  size_t contiguous = 0;
  for (size_t d = 0; d < layout.dims.size(); ++d)
    if (!layout.dims[d].empty() && layout.dims[d][0].stride == 1 && tensor.shape[d] > 1)
      contiguous = d;
  return contiguous;
}

TvLayout seen_from(const TvLayout& registers, const std::vector<int64_t>& other_extent) {
  TvLayout out{other_extent, {}, {}};
  const auto met = meetings(registers.tile, other_extent).value_or(std::vector<Meeting>());
  const auto mode_seen = [&](TvMode mode, std::vector<TvMode>& to) {
    Coord step(other_extent.size(), 0);
    for (const Meeting& m : met) {
      int64_t left = 0;  // in row-major order of what meets
      for (const size_t d : m.a) left = left * registers.tile[d] + mode.step[d];
      // Where it meets several dimensions the mode's digits fall into them, the fastest first.
      for (size_t i = m.b.size(); left > 0 && i-- > 0;) {
        const int64_t room = other_extent[m.b[i]];
        if (i > 0 && left % room == 0) {
          left /= room;
          continue;
        }
        step[m.b[i]] = left;
        const int64_t here = ceil_div(room, left);
        if (i == 0 || mode.extent <= here) break;
        to.push_back({here, step});
        step.assign(step.size(), 0);
        mode.extent /= here;
        left = 1;
      }
    }
    to.push_back({mode.extent, std::move(step)});
  };
  // Modes that count on from each other are cut anew where the dimensions end: 2 steps of 4 and 3
  // of 8 over [2, 12] are 3 of 4, then 2.
  const bool cut = std::ranges::any_of(met, [](const Meeting& m) { return m.b.size() > 1; });
  const TvLayout modes = cut ? coalesce(registers) : registers;
  for (const TvMode& mode : modes.thread) mode_seen(mode, out.thread);
  for (const TvMode& mode : modes.value) mode_seen(mode, out.value);
  return out;
}

bool meets_whole(const TvLayout& registers, const std::vector<int64_t>& other_extent) {
  const bool alike = wide_dims(registers.tile).size() == wide_dims(other_extent).size();
  return alike || seen_from(registers, other_extent).is_exact();
}
}  // namespace warploom::synth
