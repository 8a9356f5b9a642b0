#include "codegen/cuda_emitter.h"
namespace warploom::codegen {
using namespace tile;
namespace {
constexpr std::int64_t kMostTurns = 8;  // of a loop that is followed turn by turn

void join(std::map<PipelineId, SlotsInFlight::Range>& counts, std::map<PipelineId, SlotsInFlight::Range> other) {
  for (auto& [id, range] : counts)
    range = {std::min(range.least, other[id].least), std::max(range.most, other[id].most),
             std::min(range.groups, other[id].groups)},
    other.erase(id);
  for (const auto& [id, range] : other) counts[id] = {0, range.most, 0};
}

bool rises(const Index& index, const std::string& variable) {
  if (!index.depends_on(variable) || index.op() == IndexOp::variable) return true;
  if (index.op() == IndexOp::add) return rises(index.left(), variable) && rises(index.right(), variable);
  return index.op() == IndexOp::mul && index.right().constant().value_or(-1) >= 0 && rises(index.left(), variable);
}

int produces(const Body& body, PipelineId pipeline) {
  int count = 0;
  for (const Statement& statement : body) {
    if (const auto* node = std::get_if<Produce>(&statement.node)) count += node->pipeline == pipeline;
    if (const auto* node = std::get_if<If>(&statement.node)) count += produces(node->body, pipeline);
    if (const auto* node = std::get_if<For>(&statement.node)) count += 2 * produces(node->body, pipeline);
  }
  return count;
}

// The pipeline of the only Produce of a loop's turn, where no later turn fills a slot once the condition is false.
PipelineId running_out(const If& branch, const For* around) {
  if (!around || branch.right.depends_on(around->variable) || !rises(branch.left, around->variable)) return -1;
  for (const Statement& inner : branch.body)
    if (const auto* node = std::get_if<Produce>(&inner.node))
      return produces(around->body, node->pipeline) == 1 ? node->pipeline : -1;
  return -1;
}
}  // namespace
SlotsInFlight::SlotsInFlight(const Program& program) : program_(program) {
  Counts counts;
  walk(program.body, counts);
}

void SlotsInFlight::note(const void* node, PipelineId pipeline, Counts& counts, int step) {
  Range& now = counts[pipeline];
  const int stages = program_.pipeline(pipeline).stages;
  now = step > 0 ? Range{std::min(now.least, stages - 1), std::min(now.most, stages - 1), std::min(now.groups, stages - 1)}
                 : Range{std::max(now.least, 1), std::max(now.most, 1), std::max(now.groups, 1)};
  const auto [known, fresh] = before_.try_emplace(node, now);
  if (!fresh)
    known->second = {std::min(known->second.least, now.least), std::max(known->second.most, now.most),
                     std::min(known->second.groups, now.groups)};
  now.least += step, now.most += step, now.groups += step;
}

void SlotsInFlight::walk(const Body& body, Counts& counts, const For* around) {
  for (const Statement& statement : body) {
    if (const auto* loop = std::get_if<For>(&statement.node)) {
      const auto begin = loop->begin.constant(), end = loop->end.constant(), step = loop->step.constant();
      const std::int64_t turns = begin && end && step ? (std::max(*end - *begin, std::int64_t{0}) + *step - 1) / *step : -1;
      if (turns >= 0 && turns <= kMostTurns) {
        for (std::int64_t turn = 0; turn < turns; ++turn) walk(loop->body, counts, loop);
      } else {
        Counts entry;
        do {
          Counts after = entry = counts;
          walk(loop->body, after, loop);
          join(counts, std::move(after));
        } while (entry != counts);
      }
      for (auto& [id, range] : counts) range.groups = range.least;
    } else if (const auto* branch = std::get_if<If>(&statement.node)) {
      Counts after = counts;
      walk(branch->body, after, around);
      if (const PipelineId id = running_out(*branch, around); id >= 0) ++counts[id].groups;
      join(counts, std::move(after));
    } else if (const auto* produce = std::get_if<Produce>(&statement.node)) {
      note(produce, produce->pipeline, counts, 1);
    } else if (const auto* consume = std::get_if<Consume>(&statement.node)) {
      walk(consume->body, counts, around);
      note(consume, consume->pipeline, counts, -1);
    } else if (const auto* roles = std::get_if<Roles>(&statement.node)) {
      for (const Role& role : roles->roles) walk(role.body, counts);
    }
  }
}
}  // namespace warploom::codegen
