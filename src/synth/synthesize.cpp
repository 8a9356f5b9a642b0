#include "synth/synthesize.h"
#include "synth/solve.h"
namespace warploom::synth {
namespace {
constexpr std::int64_t kAlignment = 1024;  // of the widest swizzle's repeat

std::int64_t round_up(std::int64_t bytes, std::int64_t to) { return (bytes + to - 1) / to * to; }

// One tensor behind another; a pipeline's tensor takes `stages` slots. The rearrangements of a role share one piece.
void allocate(const Program& program, const std::vector<Site>& sites, Solution& solution) {
  std::int64_t next = 0;
  for (TensorId id = 0; id < static_cast<TensorId>(program.tensors.size()); ++id) {
    const Tensor& tensor = program.tensor(id);
    if (tensor.scope != Scope::shared) continue;
    const auto& layout = solution.shared.at(id);
    if (const TensorId base = tensor.windows_of; base >= 0) {
      solution.shared_offset[id] = solution.shared_offset.at(base) + tensor.from * bytes_of(tensor.dtype);
      solution.stage_bytes[id] = solution.stage_bytes.at(base);
      continue;
    }
    const std::int64_t alignment = layout.swizzle.bits ? kAlignment : 128;
    const std::int64_t stage = round_up(layout.bytes(), alignment);
    next = round_up(next, alignment);
    solution.shared_offset[id] = next;
    solution.stage_bytes[id] = stage;
    next += stage * (tensor.pipeline >= 0 ? program.pipeline(tensor.pipeline).stages : 1);
  }
  std::map<int, std::vector<Choice*>> scratch;  // by role
  for (const Site& site : sites)
    if (const auto choice = solution.choices.find(site.statement);
        choice != solution.choices.end() && !choice->second.scratch.dims.empty())
      scratch[site.role].push_back(&choice->second);
  for (const auto& [role, choices] : scratch) {
    next = round_up(next, kAlignment);
    std::int64_t bytes = 0;
    for (Choice* choice : choices) choice->scratch_offset = next, bytes = std::max(bytes, choice->scratch.bytes());
    next += bytes;
  }
  solution.shared_bytes = next;
}
}  // namespace
Result<std::vector<Solution>> synthesize_best(const Program& program, const target::Capabilities& capabilities,
                                              std::size_t most) {
  const Question question{program, capabilities};
  WARPLOOM_CHECK(check_limits(question));
  WARPLOOM_TRY(std::vector<Solution> found, solve_registers(question));
  std::vector<Solution> solutions;
  std::optional<Error> first_error;
  for (Solution& solution : found) {
    Status fits = check_registers(question, solution);
    if (fits) fits = solve_shared(question, solution);
    if (!fits && !first_error) first_error = fits.error();
    if (!fits) continue;
    allocate(program, question.sites, solution);
    solution.cost = predict(question, solution);
    solutions.push_back(std::move(solution));
  }
  if (solutions.empty()) return fail(*first_error);
  std::stable_sort(solutions.begin(), solutions.end(),
                   [](const Solution& a, const Solution& b) { return a.cost.us < b.cost.us; });
  if (solutions.size() > most) solutions.resize(most);
  return solutions;
}
}  // namespace warploom::synth
