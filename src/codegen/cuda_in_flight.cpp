#include "codegen/cuda_emitter.h"
namespace warploom::codegen {
namespace {
constexpr std::int64_t kMostTurns = 8;  // of a loop that is followed turn by turn

using Counts = std::map<PipelineId, SlotsInFlight>;

SlotsInFlight either(const SlotsInFlight& a, const SlotsInFlight& b) {
  return {std::min(a.least, b.least), std::max(a.most, b.most), std::min(a.groups, b.groups)};
}

void join(Counts& counts, Counts other) {
  for (auto& [id, range] : counts) {
    range = either(range, other[id]);
    other.erase(id);
  }
  for (const auto& [id, range] : other) counts[id] = {0, range.most, 0};
}

bool rises(const Index& index, const std::string& variable) {
  if (!index.depends_on(variable) || index.op() == IndexOp::variable) return true;
  if (index.op() == IndexOp::add) return rises(index.left(), variable) && rises(index.right(), variable);
  return index.op() == IndexOp::mul && index.right().constant().value_or(-1) >= 0 && rises(index.left(), variable);
}

// The pipeline of the only Produce of a loop's turn, where no later turn fills a slot once the condition is false.
PipelineId running_out(const If& branch, const For* around) {
  if (!around || branch.right.depends_on(around->variable) || !rises(branch.left, around->variable)) return -1;
  for (const Statement& inner : branch.body)
    if (const auto* node = std::get_if<Produce>(&inner.node))
      return produces(around->body, node->pipeline) == 1 ? node->pipeline : -1;
  return -1;
}

struct Walk {
  const Program& program;
  std::map<const void*, SlotsInFlight> before = {};

  void note(const void* node, PipelineId pipeline, Counts& counts, int step);
  void body(const Body& statements, Counts& counts, const For* around = nullptr);
};

void Walk::note(const void* node, PipelineId pipeline, Counts& counts, int step) {
  SlotsInFlight& now = counts[pipeline];
  const int low = step > 0 ? 0 : 1, high = step > 0 ? program.pipeline(pipeline).stages - 1 : INT_MAX;
  now = {std::clamp(now.least, low, high), std::clamp(now.most, low, high), std::clamp(now.groups, low, high)};
  const auto [known, fresh] = before.try_emplace(node, now);
  if (!fresh) known->second = either(known->second, now);
  now.least += step, now.most += step, now.groups += step;
}

void Walk::body(const Body& statements, Counts& counts, const For* around) {
  for (const Statement& statement : statements) {
    if (const auto* loop = std::get_if<For>(&statement.node)) {
      const auto begin = loop->begin.constant(), end = loop->end.constant(), step = loop->step.constant();
      const std::int64_t turns = begin && end && step ? (std::max(*end - *begin, std::int64_t{0}) + *step - 1) / *step : -1;
      if (turns >= 0 && turns <= kMostTurns) {
        for (std::int64_t turn = 0; turn < turns; ++turn) body(loop->body, counts, loop);
      } else {
        Counts entry;
        do {
          Counts after = entry = counts;
          body(loop->body, after, loop);
          join(counts, std::move(after));
        } while (entry != counts);
      }
      for (auto& [id, range] : counts) range.groups = range.least;
    } else if (const auto* branch = std::get_if<If>(&statement.node)) {
      Counts after = counts;
      body(branch->body, after, around);
      if (const PipelineId id = running_out(*branch, around); id >= 0) ++counts[id].groups;
      join(counts, std::move(after));
    } else if (const auto* produce = std::get_if<Produce>(&statement.node)) {
      note(produce, produce->pipeline, counts, 1);
    } else if (const auto* consume = std::get_if<Consume>(&statement.node)) {
      body(consume->body, counts, around);
      note(consume, consume->pipeline, counts, -1);
    } else if (const auto* roles = std::get_if<Roles>(&statement.node)) {
      for (const Role& role : roles->roles) body(role.body, counts);
    }
  }
}
}  // namespace
int produces(const Body& body, PipelineId pipeline) {
  constexpr int kMany = 1 << 20;
  int count = 0;
  for (const Statement& statement : body) {
    if (const auto* node = std::get_if<Produce>(&statement.node)) count += node->pipeline == pipeline;
    for_bodies(statement, [&](const Body& inner) {
      const int within = produces(inner, pipeline);
      count += within > 0 && std::holds_alternative<For>(statement.node) ? kMany : std::min(within, kMany);
    });
  }
  return std::min(count, kMany);
}

std::map<const void*, SlotsInFlight> slots_in_flight(const Program& program) {
  Walk walk{program};
  Counts counts;
  walk.body(program.body, counts);
  return walk.before;
}
}  // namespace warploom::codegen
