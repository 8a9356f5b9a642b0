#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "layout/memory_layout.h"
#include "layout/tv_layout.h"
#include "synth/shared_solver.h"
#include "synth/sites.h"
#include "synth/solve.h"
#include "synth/synthesize.h"
#include "tile/print.h"
#include "tile/program.h"

namespace warploom::synth {
using layout::Coord;

int64_t swizzle_atom_of(int64_t bytes) {
  for (const int64_t atom : {128, 64, 32})
    if (bytes % atom == 0) return atom;
  return 0;
}

Status SharedSolver::run() {
  for (TensorId id = 0; id < static_cast<TensorId>(program.tensors.size()); ++id)
    if (program.tensor(id).scope == Scope::shared) WARPLOOM_CHECK(solve(id));
  for (const Site& site : sites) {
    if (const auto* copy = site.statement->as<Copy>()) {
      WARPLOOM_CHECK(choose(site, *copy, sides_of(program, *copy)));
    }
    if (const auto* node = site.statement->as<ConvertLayout>())
      WARPLOOM_CHECK(choose_conversion(site, *node));
  }
  return ok();
}

std::vector<Use> SharedSolver::uses_of(TensorId id) const {
  std::vector<Use> uses;
  for (const Site& site : sites) {
    if (const auto* copy = site.statement->as<Copy>()) {
      if (copy->src.tensor == id) uses.push_back({&site, &copy->src, &copy->dst});
      if (copy->dst.tensor == id) uses.push_back({&site, &copy->dst, &copy->src});
    } else if (const auto* mma = site.statement->as<Mma>()) {
      const size_t k_of_a = mma->transpose_a ? 0 : 1;
      const size_t k_of_b = mma->transpose_b ? 1 : 0;
      if (mma->a.tensor == id) uses.push_back({&site, &mma->a, nullptr, mma, k_of_a});
      if (mma->b.tensor == id) uses.push_back({&site, &mma->b, nullptr, mma, k_of_b});
    }
  }
  return uses;
}

tile::StatementId SharedSolver::first_user(const std::vector<Use>& uses) {
  return uses.empty() ? kNoStatement : uses.front().site->statement->id;
}

// The dimension of the shared tensor that meets the other side's contiguous dimension.
std::optional<size_t> SharedSolver::met_contiguous(const Use& use) const {
  const Tensor& other = program.tensor(use.other->tensor);
  return met_by(*use.shared, *use.other, contiguous_dim(other));
}

// Row by row, so that windows are sums of strides.
bool SharedSolver::has_strided_views(TensorId id) const {
  return std::ranges::any_of(program.tensors,
                             [&](const Tensor& tensor) { return tensor.as_strided == id; });
}

Status SharedSolver::solve(TensorId id) {
  const auto uses = uses_of(id);
  const Tensor& tensor = program.tensor(id);
  if (has_strided_views(id) || tensor.as_strided >= 0) {
    MemoryLayout& layout = solution_.shared[id] = {{}, {}, bits_of(tensor.dtype)};
    const auto strides = tensor.strides.empty() ? dense_strides(tensor.shape) : tensor.strides;
    for (size_t d = 0; d < strides.size(); ++d)
      layout.dims.push_back({{tensor.shape[d], strides[d]}});
    solution_.reasons[id] = {first_user(uses), "row by row, as windows count"};
    return ok();
  }
  const Use* engine = nullptr;
  const Use* matrix = nullptr;
  for (const Use& use : uses) {
    if (use.mma && (!matrix || (matrix_of(*matrix).transposable && !matrix_of(use).transposable)))
      matrix = &use;
    const auto* copy = use.site->statement->as<Copy>();
    if (!copy || scope_of(*use.other) != Scope::global || tma_lacks(*use.site, *copy)) continue;
    engine = &use;
  }
  if (matrix || engine) return solve_swizzle_atoms(id, tensor, uses, engine, matrix);
  return solve_free(id, tensor, uses);
}

const Instruction& SharedSolver::matrix_of(const Use& use) const {
  return *solution_.choices.at(use.site->statement->id).instruction;
}

// "mma acc += a * b (gemm.tile:20)"
std::string SharedSolver::quoted(const Use& use) const {
  const Statement& statement = *use.site->statement;
  return fmt::format("{} ({})", print(program, statement), place_of(statement));
}

Status SharedSolver::solve_swizzle_atoms(TensorId id, const Tensor& tensor,
                                         const std::vector<Use>& uses, const Use* engine,
                                         const Use* matrix) {
  const size_t contiguous = engine ? *met_contiguous(*engine) : matrix->k_dim;
  const Use& first = engine ? *engine : *matrix;  // that wants this dimension contiguous
  constexpr int64_t kPattern = 64;  // elements of 16 bits that a pattern goes on for, in a
                                    // matrix that is not contiguous along k
  for (const Use& use : uses) {
    if (!use.mma || use.k_dim == contiguous) continue;
    Error error{ErrorCode::kNoLayout};
    error.place = place_of(*use.site->statement);
    if (use.shared->offset[contiguous].known_divisor() % kPattern != 0) {
      error.message = fmt::format(
          "shared tensor '{}': a tile begins within a pattern of its layout", tensor.name);
      error.expected =
          fmt::format("a start at multiples of {} along dimension {}", kPattern, contiguous);
      error.found = quoted(use);
      error.remedy = "let tiles begin there, or the tensor be contiguous along k";
      return fail(error);
    }
    if (!matrix_of(use).transposable) {
      error.message = fmt::format(
          "shared tensor '{}': the matrix instruction and {} ask for different contiguous "
          "dimensions",
          tensor.name, engine ? "TMA" : "another one");
      error.expected = fmt::format("dimension {} (k) contiguous, for {}: {}", use.k_dim,
                                   matrix_of(use).name, quoted(use));
      error.found = fmt::format("dimension {} contiguous, by: {}", contiguous, quoted(first));
      error.remedy =
          "transpose the global operand first (a prepare or transpose program), or use a 16-bit "
          "type";
      return fail(error);
    }
  }
  const int64_t bytes = bytes_of(tensor.dtype, tensor.shape[contiguous]);
  if (const auto panel = as_int(swizzle_atom_of(bytes))) {
    const int bits = bits_of(tensor.dtype);
    solution_.shared[id] = layout::swizzle_atoms(tensor.shape, contiguous, panel, bits);
    const Use& by = matrix ? *matrix : *engine;
    const char* const unit = matrix ? "matrix unit" : "TMA unit";
    const std::string why =
        fmt::format("{}-byte panels, as the {} reads them, contiguous along dimension {}", panel,
                    unit, contiguous);
    solution_.reasons[id] = {by.site->statement->id, why};
    return ok();
  }
  Error error{ErrorCode::kNoLayout};
  error.message = fmt::format("shared tensor '{}' is too narrow for the matrix unit", tensor.name);
  error.place = place_of(*first.site->statement);
  error.expected = fmt::format("dimension {} contiguous, of a multiple of 32 bytes, by: {}",
                               contiguous, quoted(first));
  error.found = fmt::format("{}: {} bytes", text_of(tensor.shape), bytes);
  error.remedy = "use a wider tile";
  return fail(error);
}

// Nothing but copies by threads: try each dimension as the contiguous one, with the best swizzle
// for each; keep the cheapest.
Status SharedSolver::solve_free(TensorId id, const Tensor& tensor, const std::vector<Use>& uses) {
  double best_cost = -1;
  const size_t rank = tensor.shape.size();
  for (size_t contiguous = rank; contiguous-- > 0;) {
    if (tensor.shape[contiguous] % per_byte(tensor.dtype)) continue;
    MemoryLayout layout = layout::dense(tensor.shape, contiguous, bits_of(tensor.dtype));
    double cost = 0;
    const auto accesses = accesses_of(uses, layout, contiguous, cost);
    if (tensor.pipeline >= 0 || rank == 2) layout.swizzle = choose_swizzle(accesses, layout);
    for (const auto& [registers, bytes] : accesses) {
      const auto elements = as_double(registers.values() * registers.threads());
      const double count = elements * bits_of(tensor.dtype) / 8 / bytes;
      cost += count * bank_conflict_ways(registers, layout, bytes);
    }
    if (best_cost >= 0 && cost >= best_cost) continue;
    best_cost = cost;
    solution_.shared[id] = layout;
    const std::string why =
        fmt::format("the cheapest order and swizzle for its {} uses", uses.size());
    solution_.reasons[id] = {first_user(uses), why};
  }
  return ok();
}

// Adds to `cost` that of the global side where threads copy: narrower accesses when the
// contiguous dimensions differ.
std::vector<SharedAccess> SharedSolver::accesses_of(const std::vector<Use>& uses,
                                                    const MemoryLayout& layout, size_t contiguous,
                                                    double& cost) const {
  std::vector<SharedAccess> accesses;
  for (const Use& use : uses) {
    if (scope_of(*use.other) == Scope::global) {
      const size_t along = met_contiguous(use).value_or(use.shared->extent.size() -
                                                        1);  // as choose_between() takes it
      const int vector = along == contiguous ? vector_limit(program, bounds, *use.other) : 1;
      cost += 2 * as_double(element_count(use.shared->extent)) / vector;
      const auto mapping = layout::coalesced(use.shared->extent, along, vector, use.site->threads);
      if (mapping && vector * layout.element_bits >= 8)
        accesses.push_back({*mapping, vector * layout.element_bits / 8});
      continue;
    }
    if (scope_of(*use.other) != Scope::reg) continue;
    const TvLayout tv = seen_from(solution_.registers.at(use.other->tensor), use.shared->extent);
    const Copy& copy = std::get<Copy>(use.site->statement->node);
    const bool matrix = matrix_row(copy, tv, layout, contiguous).first != nullptr;
    if (matrix) {  // 8 rows of 16 bytes: one phase of a matrix access
      Coord down(tv.tile.size(), 0);
      Coord along = down;
      down[1 - contiguous] = along[contiguous] = 1;
      const int64_t in_row = 128 / layout.element_bits;
      const TvLayout phase{tv.tile, {{8, down}}, {{in_row, along}}};
      accesses.push_back({phase, 16});
    }
    if (const auto width = common_vector(tv, layout, 16) * layout.element_bits / 8;
        !matrix && width > 0)
      accesses.push_back({tv, as_int(width)});
  }
  return accesses;
}

Status solve_shared(const SynthesisContext& question, Solution& solution) {
  return SharedSolver(question, solution).run();
}

}  // namespace warploom::synth
