#include "codegen/in_flight.h"
#include <algorithm>

namespace warploom::codegen {

using namespace tile;

namespace {

constexpr std::int64_t kMostTurns = 8;  // of a loop that is followed turn by turn

void join(std::map<PipelineId, SlotsInFlight::Range>& counts, std::map<PipelineId, SlotsInFlight::Range> other) {
  for (auto& [id, range] : counts)
    range = {std::min(range.least, other[id].least), std::max(range.most, other[id].most)}, other.erase(id);
  for (const auto& [id, range] : other) counts[id] = {0, range.most};
}

}  // namespace

SlotsInFlight::SlotsInFlight(const Program& program) : program_(program) {
  Counts counts;
  walk(program.body, counts);
}

void SlotsInFlight::note(const void* node, PipelineId pipeline, Counts& counts, int step) {
  Range& now = counts[pipeline];
  const int stages = program_.pipeline(pipeline).stages;
  now = step > 0 ? Range{std::min(now.least, stages - 1), std::min(now.most, stages - 1)}
                 : Range{std::max(now.least, 1), std::max(now.most, 1)};
  const auto [known, fresh] = before_.try_emplace(node, now);
  if (!fresh) known->second = {std::min(known->second.least, now.least), std::max(known->second.most, now.most)};
  now.least += step, now.most += step;
}

void SlotsInFlight::walk(const Body& body, Counts& counts) {
  for (const Statement& statement : body) {
    if (const auto* loop = std::get_if<For>(&statement.node)) {
      const auto begin = loop->begin.constant(), end = loop->end.constant(), step = loop->step.constant();
      const std::int64_t turns =
          begin && end && step ? (std::max(*end - *begin, std::int64_t{0}) + *step - 1) / *step : -1;
      if (turns >= 0 && turns <= kMostTurns) {
        for (std::int64_t turn = 0; turn < turns; ++turn) walk(loop->body, counts);
        continue;
      }
      for (bool changed = true; changed;) {
        Counts after = counts;
        walk(loop->body, after);
        const Counts entry = counts;
        join(counts, std::move(after));
        changed =
            !std::equal(counts.begin(), counts.end(), entry.begin(), entry.end(), [](const auto& a, const auto& b) {
              return a.second.least == b.second.least && a.second.most == b.second.most;
            });
      }
    } else if (const auto* branch = std::get_if<If>(&statement.node)) {
      Counts after = counts;
      walk(branch->body, after);
      join(counts, std::move(after));
    } else if (const auto* produce = std::get_if<Produce>(&statement.node)) {
      note(produce, produce->pipeline, counts, 1);
    } else if (const auto* consume = std::get_if<Consume>(&statement.node)) {
      walk(consume->body, counts);
      note(consume, consume->pipeline, counts, -1);
    } else if (const auto* roles = std::get_if<Roles>(&statement.node)) {
      for (const Role& role : roles->roles) walk(role.body, counts);
    }
  }
}

}  // namespace warploom::codegen
