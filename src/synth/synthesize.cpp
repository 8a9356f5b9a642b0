#include "synth/synthesize.h"
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "layout/tv_layout.h"
#include "synth/sites.h"
#include "synth/solve.h"
#include "target/capabilities.h"
#include "tile/print.h"
#include "tile/program.h"

namespace warploom::synth {
namespace {
using target::Capabilities;

constexpr int kMostRegisters = 255;  // of a thread
constexpr int kLeastBudget = 24;
constexpr int kMostBudget = 256;
constexpr int kBudgetStep = 8;

// Registers a thread has when the kernel begins, if all of the multiprocessor's go to one block.
int fair_share(const SynthesisContext& question) {
  return question.capabilities.registers / (question.program.warps * 32) / kBudgetStep *
         kBudgetStep;
}

Status check_cluster(const SynthesisContext& question) {
  const int64_t blocks = cluster_size(question.program);
  if (blocks <= question.capabilities.max_cluster) return ok();
  const auto reduce = std::ranges::find_if(
      question.sites, [](const Site& site) { return site.statement->is<ClusterReduce>(); });
  const Capabilities& card = question.capabilities;
  const auto& cluster = question.program.cluster;
  Error error{ErrorCode::kResourceLimit, "a cluster has more blocks than the target allows"};
  error.place = place_of(question.program);
  if (reduce != question.sites.end()) error.place = place_of(*reduce->statement);
  error.expected = fmt::format("at most {} blocks a cluster on {}", card.max_cluster, card.arch);
  error.found =
      fmt::format("cluster({}, {}, {}): {} blocks", cluster[0], cluster[1], cluster[2], blocks);
  error.remedy = "take a smaller cluster, or let a second program reduce what the blocks wrote";
  return fail(error);
}

Status check_budgets(const SynthesisContext& question, const Site& site, const Roles& roles) {
  int64_t total = 0;
  std::string found;
  const auto refuse = [&](const std::string& expected) {
    const std::string message = "the roles' registers are none that the target can hand out";
    const std::string place = place_of(*site.statement);
    return fail({ErrorCode::kResourceLimit, message, place, expected, found,
                 "change the roles' registers or warps"});
  };
  for (const Role& role : roles.roles) {
    const int each = role.registers ? role.registers : fair_share(question);
    const int threads = role.warps * 32;
    if (!found.empty()) found += ", ";
    found += fmt::format("role '{}' {} x {} registers", role.name, threads, each);
    if (role.registers && !question.capabilities.has_wgmma)
      return refuse(fmt::format("no budgets: {} cannot move registers between warps",
                                question.capabilities.arch));
    if (role.registers && (role.registers % kBudgetStep || role.registers < kLeastBudget ||
                           role.registers > kMostBudget))
      return refuse(
          fmt::format("a multiple of {} from {} to {}", kBudgetStep, kLeastBudget, kMostBudget));
    total += threads * each;
  }
  if (total <= question.capabilities.registers) return ok();
  found += fmt::format(": {} registers", total);
  return refuse(fmt::format("at most {} registers, those of a multiprocessor of {}",
                            question.capabilities.registers, question.capabilities.arch));
}

// Before the search: what no layout can mend, clusters and registers beyond the target's,
// statements on part of a register tensor.
// Windows come to a GPU's registers by copies, stage by stage.
Status check_windows(const SynthesisContext& question, const Statement& statement,
                     const Tensor& tensor) {
  if (tensor.as_strided < 0 || (tensor.pipeline >= 0 && !statement.is<Mma>())) return ok();
  Error error{ErrorCode::kNoInstruction};
  error.message = fmt::format("a statement works on windows '{}' where they lie", tensor.name);
  error.place = place_of(statement);
  error.expected = "windows of a pipeline's tensor, copied to a register tensor first";
  error.found = print(question.program, statement);
  error.remedy = "copy them to registers, or build the program for the CPU";
  return fail(error);
}

Status check_limits(const SynthesisContext& question) {
  WARPLOOM_CHECK(check_cluster(question));
  for (const Site& site : question.sites) {
    const Statement& statement = *site.statement;
    if (const auto* roles = statement.as<Roles>())
      WARPLOOM_CHECK(check_budgets(question, site, *roles));
    // The elements of a register tensor are spread over threads, each of which runs the same
    // statement: there is no part of it.
    for (const TensorUse& use : uses_of(statement)) {
      const Tensor& tensor = question.program.tensor(use.tensor);
      WARPLOOM_CHECK(check_windows(question, statement, tensor));
      if (!use.tile || tensor.scope != Scope::reg || use.tile->extent == tensor.shape) continue;
      Error error{ErrorCode::kNoInstruction};
      error.message = fmt::format("a statement works on part of register tensor '{}'", tensor.name);
      error.place = place_of(statement);
      error.expected = fmt::format("all of '{}', {}: its elements are spread over the threads",
                                   tensor.name, text_of(tensor.shape));
      const std::string text = print(question.program, statement);
      error.found = fmt::format("{}: {} of it", text, text_of(use.tile->extent));
      error.remedy = "give the part a register tensor of its own, or cut it out of a shared tensor";
      return fail(error);
    }
  }
  return ok();
}

// After it: the register side of a copy must meet whole dimensions of the other side.
Status check_meeting(const SynthesisContext& question, const Solution& solution, const Site& site,
                     const Tile& side, const Tile& other) {
  const auto known = solution.registers.find(side.tensor);
  if (known == solution.registers.end() || meets_whole(known->second, other.extent)) return ok();
  const std::string statement = print(question.program, *site.statement);
  Error error{ErrorCode::kNoLayout};
  error.message =
      fmt::format("a thread's elements of '{}' straddle dimensions that meet one of its own",
                  question.program.tensor(side.tensor).name);
  error.place = place_of(*site.statement);
  error.expected = "extents of powers of two where several dimensions meet one";
  error.found =
      fmt::format("{}: {} and {}", statement, text_of(side.extent), text_of(other.extent));
  error.remedy = "change the extents, or copy row by row";
  return fail(error);
}

// A register tensor alone must fit in the registers that a thread of its role has, `role` null
// where there are none.
Status check_tensor(const SynthesisContext& question, const TvLayout& layout, const Tensor& tensor,
                    const Site& site, const Role* role) {
  const int budget = role && role->registers ? role->registers : fair_share(question);
  const int64_t most = std::min(budget, kMostRegisters);
  const int least = per_byte(tensor.dtype);
  Error error{ErrorCode::kNoLayout};
  error.place = place_of(*site.statement);
  if (layout.values() % least) {
    error.message = fmt::format("a thread holds no whole bytes of '{}'", tensor.name);
    error.expected = fmt::format("{} elements, or a multiple", least);
    error.found = to_string(coalesce(layout));
    error.remedy = "use a larger tile or fewer warps, or a wider type";
    return fail(error);
  }
  const int64_t taken = ceil_div(layout.values() * bits_of(tensor.dtype), 32);
  if (taken <= most) return ok();
  const std::string statement = print(question.program, *site.statement);
  error.code = ErrorCode::kResourceLimit;
  error.message =
      fmt::format("register tensor '{}' alone takes more registers than a thread has", tensor.name);
  error.expected = fmt::format("at most {} registers a thread", most);
  if (role) error.expected += fmt::format(" of role '{}'", role->name);
  error.found = fmt::format("{}: '{}' {} {} over {} threads takes {}", statement, tensor.name,
                            name_of(tensor.dtype), text_of(tensor.shape), site.threads, taken);
  error.remedy = "use more warps, a smaller tile or a larger budget";
  return fail(error);
}

Status check_registers(const SynthesisContext& question, const Solution& solution) {
  const Roles* roles = roles_of(question.program);
  for (const Site& site : question.sites) {
    if (const auto* copy = site.statement->as<Copy>()) {
      WARPLOOM_CHECK(check_meeting(question, solution, site, copy->src, copy->dst));
      WARPLOOM_CHECK(check_meeting(question, solution, site, copy->dst, copy->src));
    }
    const Role* role = roles && site.role >= 0 ? &roles->roles[site.role] : nullptr;
    for (const TensorUse& use : uses_of(*site.statement)) {
      const auto layout = solution.registers.find(use.tensor);
      if (layout == solution.registers.end()) continue;
      const Tensor& tensor = question.program.tensor(use.tensor);
      WARPLOOM_CHECK(check_tensor(question, layout->second, tensor, site, role));
    }
  }
  return ok();
}

constexpr int64_t kAlignment = 1024;  // of the widest swizzle's repeat

// One tensor behind another; a pipeline's tensor is there `stages` times. The conversions of a role
// share one piece.
void allocate(const Program& program, const std::vector<Site>& sites, Solution& solution) {
  int64_t next = 0;
  for (TensorId id = 0; id < static_cast<TensorId>(program.tensors.size()); ++id) {
    const Tensor& tensor = program.tensor(id);
    if (tensor.scope != Scope::shared) continue;
    const auto& layout = solution.shared.at(id);
    if (const TensorId base = tensor.as_strided; base >= 0) {
      const int64_t from_base = tensor.from * bytes_of(tensor.dtype);
      solution.shared_offset[id] = solution.shared_offset.at(base) + from_base;
      solution.stage_bytes[id] = solution.stage_bytes.at(base);
      continue;
    }
    const int64_t alignment = layout.swizzle.bits ? kAlignment : 128;
    const int64_t stage = round_up(layout.bytes(), alignment);
    next = round_up(next, alignment);
    solution.shared_offset[id] = next;
    solution.stage_bytes[id] = stage;
    next += stage * (tensor.pipeline >= 0 ? program.pipeline(tensor.pipeline).stages : 1);
  }
  std::map<int, std::vector<InstructionChoice*>> scratch;  // by role
  for (const Site& site : sites)
    if (const auto choice = solution.choices.find(site.statement->id);
        choice != solution.choices.end() && !choice->second.scratch.dims.empty())
      scratch[site.role].push_back(&choice->second);
  for (const auto& [role, choices] : scratch) {
    next = round_up(next, kAlignment);
    int64_t bytes = 0;
    for (InstructionChoice* choice : choices) {
      choice->scratch_offset = next;
      bytes = std::max(bytes, choice->scratch.bytes());
    }
    next += bytes;
  }
  solution.shared_bytes = next;
}
}  // namespace

Result<std::vector<Solution>> synthesize_best(const Program& program,
                                              const Capabilities& capabilities, size_t most) {
  const SynthesisContext question{program, capabilities};
  WARPLOOM_CHECK(check_limits(question));
  WARPLOOM_TRY(std::vector<Solution> found, solve_registers(question));
  std::vector<Solution> solutions;
  std::optional<Error> first_error;
  for (Solution& solution : found) {
    Status fits = check_registers(question, solution);
    if (fits) {
      solve_prepacked(question, solution);
      fits = solve_shared(question, solution);
    }
    if (!fits && !first_error) first_error = fits.error();
    if (!fits) continue;
    allocate(program, question.sites, solution);
    solution.cost = predict(question, solution);
    solutions.push_back(std::move(solution));
  }
  if (solutions.empty()) return fail(*first_error);
  std::ranges::stable_sort(
      solutions, [](const Solution& a, const Solution& b) { return a.cost.us < b.cost.us; });
  if (solutions.size() > most) solutions.resize(most);
  return solutions;
}
}  // namespace warploom::synth
