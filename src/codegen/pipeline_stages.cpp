#include "codegen/pipeline_stages.h"
#include <algorithm>
#include <climits>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::codegen {
namespace {
constexpr int64_t kMostTurns = 8;  // of a loop that is followed turn by turn

using Counts = std::map<PipelineId, StagesInFlight>;

StagesInFlight either(const StagesInFlight& a, const StagesInFlight& b) {
  StagesInFlight range;
  range.least = std::min(a.least, b.least);
  range.most = std::max(a.most, b.most);
  range.groups = std::min(a.groups, b.groups);
  return range;
}

void join(Counts& counts, Counts other) {
  for (const auto& [id, range] : other)
    counts.try_emplace(id);
  for (auto& [id, range] : counts)
    range = either(range, other[id]);
}

// Whether an index grows with the variable, or does not depend on it.
bool rises(const Index& index, const std::string& variable) {
  if (!index.depends_on(variable) || index.op() == IndexOp::variable) return true;
  if (index.op() == IndexOp::add)
    return rises(index.left(), variable) && rises(index.right(), variable);
  if (index.op() != IndexOp::mul) return false;
  const bool positive = index.right().constant().value_or(-1) >= 0;
  return positive && rises(index.left(), variable);
}

// The pipeline of the only Produce of a loop's turn, where no later turn fills a stage once the
// condition is false.
PipelineId running_out(const If& branch, const For* around) {
  if (!around || branch.right.depends_on(around->variable) || !rises(branch.left, around->variable))
    return -1;
  for (const Statement& inner : branch.body)
    if (const auto* node = inner.as<Produce>())
      return produces(around->body, node->pipeline) == 1 ? node->pipeline : -1;
  return -1;
}

// The turns of a loop where its bounds are constants; -1 where they are not.
int64_t turns_of(const For& loop) {
  const auto begin = loop.begin.constant();
  const auto end = loop.end.constant();
  const auto step = loop.step.constant();
  if (!begin || !end || !step) return -1;
  return ceil_div(std::max(*end - *begin, int64_t{0}), *step);
}

// Follows the program and counts stages. Loops of few turns are followed turn by turn, others until
// another turn adds nothing. What a loop makes of the counts at its entry is kept, so that a loop
// inside others is followed once for each different entry and not once for each of their turns.
class StageWalk {
 public:
  explicit StageWalk(const Program& program) : program_(program) {}

  std::map<StatementId, StagesInFlight> run() {
    Counts counts;
    body(program_.body, counts, nullptr);
    return std::move(before_);
  }

 private:
  struct Followed {
    Counts entry;
    Counts exit;
  };

  void note(StatementId id, PipelineId pipeline, Counts& counts, int step) {
    StagesInFlight& now = counts[pipeline];
    const int low = step > 0 ? 0 : 1;
    const int high = step > 0 ? program_.pipeline(pipeline).stages - 1 : INT_MAX;
    now.least = std::clamp(now.least, low, high);
    now.most = std::clamp(now.most, low, high);
    now.groups = std::clamp(now.groups, low, high);
    const auto [known, fresh] = before_.try_emplace(id, now);
    if (!fresh) known->second = either(known->second, now);
    now.least += step;
    now.most += step;
    now.groups += step;
  }

  void body(const Body& statements, Counts& counts, const For* around) {
    for (const Statement& statement : statements)
      follow(statement, counts, around);
  }

  void follow(const Statement& statement, Counts& counts, const For* around) {
    if (const auto* loop = statement.as<For>()) {
      follow_loop(statement.id, *loop, counts);
    } else if (const auto* branch = statement.as<If>()) {
      Counts after = counts;
      body(branch->body, after, around);
      if (const PipelineId id = running_out(*branch, around); id >= 0) ++counts[id].groups;
      join(counts, std::move(after));
    } else if (const auto* produce = statement.as<Produce>()) {
      note(statement.id, produce->pipeline, counts, 1);
    } else if (const auto* consume = statement.as<Consume>()) {
      body(consume->body, counts, around);
      note(statement.id, consume->pipeline, counts, -1);
    } else if (const auto* roles = statement.as<Roles>()) {
      for (const Role& role : roles->roles)
        body(role.body, counts, nullptr);
    }
  }

  void follow_loop(StatementId id, const For& loop, Counts& counts) {
    for (const Followed& known : followed_[id])
      if (known.entry == counts) {
        counts = known.exit;
        return;
      }
    const Counts entry = counts;
    const int64_t turns = turns_of(loop);
    if (turns >= 0 && turns <= kMostTurns) {
      for (int64_t turn = 0; turn < turns; ++turn)
        body(loop.body, counts, &loop);
    } else {
      settle(loop, counts);
    }
    for (auto& [pipeline, range] : counts)
      range.groups = range.least;
    followed_[id].push_back({entry, counts});
  }

  // Turns until another adds nothing.
  void settle(const For& loop, Counts& counts) {
    Counts before;
    do {
      before = counts;
      Counts after = counts;
      body(loop.body, after, &loop);
      join(counts, std::move(after));
    } while (before != counts);
  }

  const Program& program_;
  std::map<StatementId, StagesInFlight> before_;
  std::map<StatementId, std::vector<Followed>> followed_;
};
}  // namespace

int produces(const Body& body, PipelineId pipeline) {
  constexpr int kMany = 1 << 20;
  int count = 0;
  for (const Statement& statement : body) {
    if (const auto* node = statement.as<Produce>()) count += node->pipeline == pipeline;
    for_bodies(statement, [&](const Body& inner) {
      const int within = produces(inner, pipeline);
      count += within > 0 && statement.is<For>() ? kMany : std::min(within, kMany);
    });
  }
  return std::min(count, kMany);
}

bool fills_again(const Program& program, PipelineId pipeline) {
  return produces(program.body, pipeline) > program.pipeline(pipeline).stages;
}

std::map<StatementId, StagesInFlight> stages_in_flight(const Program& program) {
  return StageWalk(program).run();
}

StageUse use_in(const Program& program, const Consume& node) {
  StageUse use{.lags = node.mma_in_flight > 0};
  for (const Statement& statement : node.body)
    for_statements(statement, [&](const Statement& one) {
      const auto* copy = one.as<Copy>();
      use.multiplies |= one.is<Mma>();
      if (!copy) return;
      const Tensor& src = program.tensor(copy->src.tensor);
      const Tensor& dst = program.tensor(copy->dst.tensor);
      use.reads |= src.pipeline == node.pipeline && dst.scope == Scope::reg;
    });
  return use;
}

std::map<PipelineId, std::optional<StageUse>> pipelines_in(const Program& program,
                                                           std::span<const Statement> body) {
  std::map<PipelineId, std::optional<StageUse>> found;
  for (const Statement& statement : body)
    for_statements(statement, [&](const Statement& one) {
      if (const auto* node = one.as<Produce>()) found.try_emplace(node->pipeline);
      const auto* node = one.as<Consume>();
      if (!node) return;
      const StageUse use = use_in(program, *node);
      std::optional<StageUse>& all = found[node->pipeline];
      if (!all) all = use;
      all->multiplies |= use.multiplies;
      all->lags |= use.lags;
    });
  return found;
}
}  // namespace warploom::codegen
