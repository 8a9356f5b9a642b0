#include "synth/synthesize.h"
#include "synth/registers.h"
#include "synth/shared.h"
#include "synth/sites.h"

namespace warploom::synth {
namespace {

constexpr std::int64_t kAlignment = 1024;  // of the widest swizzle's repeat

std::int64_t round_up(std::int64_t bytes, std::int64_t to) { return (bytes + to - 1) / to * to; }

// One tensor behind another; a pipeline's tensor takes `stages` slots.
void allocate(const tile::Program& program, Solution& solution) {
  std::int64_t next = 0;
  for (tile::TensorId id = 0; id < static_cast<tile::TensorId>(program.tensors.size()); ++id) {
    const tile::Tensor& tensor = program.tensor(id);
    if (tensor.scope != tile::Scope::shared) continue;
    const auto& layout = solution.shared.at(id);
    const std::int64_t alignment = layout.swizzle.bits ? kAlignment : 128;
    const std::int64_t stage = round_up(layout.bytes(), alignment);
    next = round_up(next, alignment);
    solution.shared_offset[id] = next;
    solution.stage_bytes[id] = stage;
    next += stage * (tensor.pipeline >= 0 ? program.pipeline(tensor.pipeline).stages : 1);
  }
  solution.shared_bytes = next;
}

}  // namespace

namespace {
Result<Solution> solve(const tile::Program& program, const target::Capabilities& capabilities) {
  const std::vector<Site> sites = sites_of(program);
  const Bounds bounds(program);
  WARPLOOM_TRY(RegisterSolution registers, solve_registers(program, sites, bounds, capabilities));
  Solution solution;
  solution.registers = std::move(registers.registers);
  for (const auto& [statement, instruction] : registers.matrix) solution.choices[statement] = {instruction, 1, {}};
  WARPLOOM_CHECK(solve_shared(program, sites, bounds, capabilities, solution));
  allocate(program, solution);
  return solution;
}
}  // namespace

Result<Solution> synthesize(const tile::Program& program, const target::Capabilities& capabilities) {
  return solve(program, capabilities).map_error([](Error error) {
    if (error.code == ErrorCode::kLayout) error.code = ErrorCode::kNoLayout;  // a layout that does not exist
    return error;
  });
}

}  // namespace warploom::synth
