#include "codegen/cuda_analysis.h"
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <utility>
#include "base/casts.h"
#include "codegen/pipeline_stages.h"
#include "layout/tv_layout.h"
#include "synth/sites.h"
#include "synth/synthesize.h"
#include "target/instruction.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::codegen {
namespace {
using layout::ThreadDigit;
using layout::TvLayout;
using synth::Site;
using synth::Solution;
using target::Instruction;
using target::Method;

bool loop_runs(const synth::Bounds& bounds, const Index& begin, const Index& end) {
  if (end.op() == IndexOp::min) {
    const bool before_left = loop_runs(bounds, begin, end.left());
    return before_left && loop_runs(bounds, begin, end.right());
  }
  const bool apart = bounds.of(begin).high < bounds.of(end).low;
  return apart || bounds.of(end - begin).low > 0;
}

// Looks for the product that follows a fill with zeros.
class FillSearch {
 public:
  FillSearch(const synth::Bounds& bounds, const Solution& solution)
      : bounds_(bounds), solution_(solution) {}

  void search(std::span<const Statement> statements) {
    for (size_t i = 0; i < statements.size(); ++i) {
      const auto* fill = statements[i].as<Fill>();
      if (fill && fill->value == 0 && overwrites(statements.subspan(i + 1), fill->dst, ""))
        found_.fills.insert(statements[i].id);
      for_bodies(statements[i], [&](const Body& inner) { search(inner); });
    }
  }

  SkippedFills found() && { return std::move(found_); }

 private:
  static bool adds_to(const Statement& statement, TensorId sum) {
    const auto* mma = statement.as<Mma>();
    return mma && mma->acc == sum && mma->a.tensor != sum && mma->b.tensor != sum;
  }

  bool is_wgmma(const Statement& statement) const {
    return solution_.choices.at(statement.id).instruction->method == Method::wgmma;
  }

  // Whether what next touches the sum, for certain, is a wgmma into it, which needs no zeros to add
  // to. In a loop nothing but such products may touch it, since later turns find what they left.
  bool overwrites(std::span<const Statement> statements, TensorId sum, const std::string& later) {
    for (const Statement& one : statements) {
      bool touched = false;
      bool otherwise = false;
      for_statements(one, [&](const Statement& inner) {
        const auto uses = uses_of(inner);
        if (std::ranges::count(uses, sum, &TensorUse::tensor) == 0) return;
        touched = true;
        otherwise |= !adds_to(inner, sum);
      });
      if (touched) return begins_anew(one, sum, otherwise, later);
    }
    return false;
  }

  bool begins_anew(const Statement& one, TensorId sum, bool otherwise, const std::string& later) {
    if (const auto* consume = one.as<Consume>()) return overwrites(consume->body, sum, later);
    const auto* loop = one.as<For>();
    if (loop && !otherwise && loop_runs(bounds_, loop->begin, loop->end)) {
      const std::string turn = fmt::format("{} > {} || ", loop->variable, loop->begin.text());
      return overwrites(loop->body, sum, later + turn);
    }
    if (!adds_to(one, sum) || !is_wgmma(one)) return false;
    found_.adds_where[one.id] = later;
    return true;
  }

  const synth::Bounds& bounds_;
  const Solution& solution_;
  SkippedFills found_;
};

SkippedFills find_skipped_fills(const Program& program, const synth::Bounds& bounds,
                                const Solution& solution) {
  FillSearch search(bounds, solution);
  search.search(program.body);
  return std::move(search).found();
}
}  // namespace

CudaAnalysis::CudaAnalysis(const Program& given, const Solution& of)
    : program(given),
      solution(of),
      sites(synth::sites_of(given)),
      bounds(given),
      in_flight(stages_in_flight(given)),
      skipped_fills(find_skipped_fills(given, bounds, of)) {
  for (PipelineId id = 0; id < static_cast<PipelineId>(given.pipelines.size()); ++id)
    if (synth::is_between_roles(sites, id)) between_roles_.insert(id);
}

const Instruction* CudaAnalysis::instruction_of(StatementId id) const {
  const auto choice = solution.choices.find(id);
  return choice == solution.choices.end() ? nullptr : choice->second.instruction;
}

bool CudaAnalysis::runs(const Index& begin, const Index& end) const {
  return loop_runs(bounds, begin, end);
}

bool CudaAnalysis::never_runs(const For& loop) const {
  const auto begin = loop.begin.constant();
  const auto end = loop.end.constant();
  return begin && end && *end <= *begin;
}

bool CudaAnalysis::is_single_thread(int role) const {
  const Roles* roles = roles_of(program);
  if (!roles || role < 0 || roles->roles[role].body.empty()) return false;
  return std::ranges::all_of(sites, [&](const Site& site) {
    if (site.role != role || site.statement->is<For, If, Produce, Signal, Wait>()) return true;
    const Instruction* instruction = instruction_of(site.statement->id);
    return instruction && instruction->method == Method::tma;
  });
}

int CudaAnalysis::cluster_reductions() const {
  const auto reduces = [](const Site& site) { return site.statement->is<ClusterReduce>(); };
  return as_int(std::ranges::count_if(sites, reduces));
}

int warp_levels(const TvLayout& layout, size_t axis) {
  const auto is_level = [&](const ThreadDigit& digit) {
    return digit.step[axis] != 0 && !digit.of_lane();
  };
  return as_int(std::ranges::count_if(thread_digits(layout, true), is_level));
}

bool crosses_warps(const TvLayout& layout, size_t axis) {
  return warp_levels(layout, axis) > 0;
}

bool warps_hold_own_rows(const TvLayout& layout, int role_threads) {
  if (layout.threads() != role_threads) return false;
  const auto own = [](const ThreadDigit& digit) { return digit.moves() || digit.of_lane(); };
  return std::ranges::all_of(thread_digits(layout, true), own);
}

std::map<PipelineId, bool> lagging_in(const CudaAnalysis& analysis, const Body& body) {
  std::map<PipelineId, bool> lagging;
  for (const Statement& statement : body) {
    const auto* node = statement.as<Consume>();
    if (!node) continue;
    const StageUse use = use_in(analysis.program, *node);
    if (node->mma_in_flight > 0 && use.multiplies && analysis.has_barriers(node->pipeline))
      lagging[node->pipeline] |= use.reads;
    for (const auto& [id, reads] : lagging_in(analysis, node->body))
      lagging[id] |= reads;
  }
  return lagging;
}
}  // namespace warploom::codegen
