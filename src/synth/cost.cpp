// Cost: the predicted time of a program under a solution, so that solutions and schedules can be
// ordered without running them.
//
// The model walks the program once, as block 0 would run it, and adds up what the block asks of
// each unit of its multiprocessor: tensor core, issue slots, shared memory (wavefronts, conflicts
// included), bytes from the L2 (whole 32-byte sectors, as the layout's lanes touch them); and
// beside these the chain of latencies that one thread of control waits for: loads where their
// values are first needed, stores at the end, and a pipeline of s stages hides a stage's latency s
// times. Blocks that share a multiprocessor add their units and overlap their chains. DRAM traffic
// is counted by the wave: the distinct boxes that the blocks of one wave read.
//
//   round = max(chain, resident · max(tensor, issue, shared, l2))
//   time = the greater of rounds · round / clock and DRAM bytes / bandwidth, and a tenth of the
//   lesser
//
// Units: microseconds in `us`, cycles elsewhere. Rates: target/capabilities.h. How well it orders
// real candidates: docs/compiler.md.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "synth/cost_model.h"
#include "synth/sites.h"
#include "synth/solve.h"
#include "synth/synthesize.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::synth {
namespace {
constexpr double kOverlap =
    0.1;  // of the lesser of both, that a block's work and DRAM do not hide of each other

// Below `count`, without a pattern.
int64_t scattered(size_t i, int64_t count) {
  return as_int64(i * 0x9E3779B1u >> 8) % count;
}
}  // namespace

Cost CostModel::run() {
  Cost cost;
  cost.resident = resident_blocks();
  const auto num_sms = as_double(capabilities.cluster_processors(cluster_size(program)));
  const double running = std::min(blocks_, num_sms);
  const double at_once = num_sms * cost.resident;
  const double whole = std::floor(blocks_ / at_once);
  const double in_wave = std::clamp(std::min(blocks_, at_once), 1.0, 256.0);
  wave_.blocks = as_size(in_wave);
  for (size_t block = 0; block < wave_.blocks; ++block) {
    Environment at;
    bind_block(at, as_int64(block));
    for (const auto& [name, value] : at)
      wave_.columns[name].push_back(value);
    if (block == 0) first_ = at;
  }
  const auto all = as_int64(blocks_);
  const auto spread = std::min<int64_t>(all, 64);
  for (int64_t i = 0; i < spread; ++i) {
    const int64_t scaled = i * all + scattered(i, all);
    bind_block(spread_.emplace_back(), scaled / spread);
  }
  const Work block = walk(program.body, program.warps * 32);
  cost.tensor = block.tensor;
  cost.issue = block.issue / 4;
  cost.shared = block.shared;
  cost.l2 = block.l2_bytes / std::min(rates_.l2_bytes, rates_.l2_total_bytes / running);
  cost.chain = block.chain + rates_.block_cycles;
  const double units = std::max({cost.tensor, cost.issue, cost.shared, cost.l2});
  const auto round = [&](double resident) { return std::max(cost.chain, resident * units); };
  const double left = blocks_ - whole * at_once;  // in a last round that is not whole
  double cycles = whole * round(cost.resident);
  if (left > 0) cycles += round(std::ceil(left / num_sms));
  cost.dram_us = dram_bytes() / (capabilities.copy_gbs() * 1e3);
  const double own = cycles / (rates_.clock_ghz * 1e3);
  const double longer = std::max(own, cost.dram_us);
  const double shorter = std::min(own, cost.dram_us);
  cost.us = rates_.launch_us + longer + kOverlap * shorter;
  return cost;
}

void CostModel::bind_block(Environment& at, int64_t block) const {
  at["cluster_rank"] = block % cluster_size(program);
  for (int d = 0; d < 3; block /= program.grid[d++])
    at[tile::block(d).name()] = block % program.grid[d];
}

// Of a statement's register tensors, each once, without accumulators.
double CostModel::registers_named(const Statement& statement,
                                  const std::set<TensorId>& accumulators) const {
  double named = 0;
  std::set<TensorId> seen;
  for (const TensorUse& use : uses_of(statement)) {
    const Tensor& tensor = program.tensor(use.tensor);
    if (tensor.scope != Scope::reg || accumulators.contains(use.tensor)) continue;
    if (!seen.insert(use.tensor).second) continue;
    named += values(use.tensor) * bits_of(tensor.dtype) / 32;
  }
  return named;
}

// What a thread holds at once: accumulators, and the most that any one statement names.
int CostModel::resident_blocks() const {
  // by role
  std::map<int, double> kept;
  std::map<int, double> most;
  std::set<TensorId> accumulators;
  for (const Site& site : sites)
    if (const auto* mma = site.statement->as<Mma>(); mma && accumulators.insert(mma->acc).second)
      kept[site.role] += values(mma->acc);
  for (const Site& site : sites) {
    const double named = registers_named(*site.statement, accumulators);
    most[site.role] = std::max(most[site.role], named);
  }
  double registers = 0;
  for (const auto& [role, amount] : most)
    registers = std::max(registers, 32 + amount + kept[role]);
  const Roles* const roles = roles_of(program);
  if (roles && std::ranges::any_of(roles->roles, &Role::registers))
    registers = 168;  // the budgets move registers between roles, about this mean
  const double threads = program.warps * 32;
  const double handed_out = std::min(255.0, std::ceil(registers / 8) * 8);  // in steps of 8
  const double by_registers = capabilities.registers / (handed_out * threads);
  const auto shared_of_sm = static_cast<double>(capabilities.shared_bytes);
  const double by_shared = shared_of_sm / static_cast<double>(solution_.shared_bytes + 1024);
  const double by_threads = capabilities.threads_per_sm / threads;
  const double blocks = std::min({by_registers, by_shared, by_threads, 32.0});
  return std::max(1, static_cast<int>(blocks));
}

// What is loaded in front of a Consume arrives while that waits. Behind one that lets matrix
// instructions run on, what does not need their sums is done meanwhile; else, as far as the other
// warpgroups' are under way. So is what does not need what a cluster makes.
Work CostModel::walk(const Body& body, int threads) {
  Work work;
  Transfers under_way;
  Running running;
  double arrives = 0;
  for (size_t i = 0; i < body.size(); ++i) {
    const Statement& statement = body[i];
    Work one = statement.visit([&](const auto& node) { return cost_of(statement, node, threads); });
    if (is_load(statement) && is_before_consume(body, i))
      arrives = std::max(arrives, std::exchange(one.chain, 0));
    if (statement.is<Consume>()) one.chain = std::max(one.chain, std::exchange(arrives, 0));
    const auto uses = uses_of(statement);
    const double until = awaited(statement, uses, under_way);
    const double ready = std::max(work.chain, until);
    if (const auto* copy = statement.as<Copy>(); copy && one.chain > 0 && moves_registers(*copy))
      transfer(*copy, ready, one, under_way);
    one.chain += std::max(0.0, until - work.chain);
    if (const auto* consume = statement.as<Consume>())
      running = running_after(*consume, one.chain, threads);
    else if (const auto* meeting = statement.as<ClusterReduce>())
      running = {.cycles = rates_.cluster_cycles, .alike = 0, .sums = {meeting->dst}};
    else
      hide(one, uses, running);
    work.add(one);
  }
  if (loops_.empty() && under_way.free > 0)
    work.chain = std::max(work.chain, under_way.free + rates_.store_latency);
  return work;
}

bool CostModel::is_load(const Statement& statement) const {
  const auto* copy = statement.as<Copy>();
  return copy && program.tensor(copy->src.tensor).scope == Scope::global;
}

// Whether nothing but loads and fills comes between statement i and a Consume.
bool CostModel::is_before_consume(const Body& body, size_t i) const {
  const auto here = body.begin() + as_int64(i);
  const auto is_filler = [&](const Statement& s) { return is_load(s) || s.is<Fill>(); };
  const auto next = std::find_if_not(here, body.end(), is_filler);
  return next != body.end() && next->is<Consume>();
}

// When what the statement uses has arrived; of one with a body, when everything has.
double CostModel::awaited(const Statement& statement, const std::vector<TensorUse>& uses,
                          const Transfers& under_way) {
  const bool branches = statement.is<For>() || statement.is<If>();
  const bool has_body = branches || statement.is<Roles>();
  if (!has_body) return under_way.wait(uses);
  double until = 0;
  for (const auto& [tensor, at] : under_way.arrive)
    until = std::max(until, at);
  return until;
}

// The way between memory and registers is taken from `ready` on; the thread itself goes on.
void CostModel::transfer(const Copy& copy, double ready, Work& one, Transfers& under_way) const {
  const bool loads = program.tensor(copy.src.tensor).scope == Scope::global;
  const double latency = loads ? rates_.memory_latency : rates_.store_latency;
  under_way.free = std::max(under_way.free, ready) + one.chain - latency;
  under_way.arrive.erase(copy.dst.tensor);
  if (loads) {
    under_way.arrive[copy.dst.tensor] = under_way.free + latency;
    one.chain = one.issue / 4;
  } else {
    one.chain -= latency;
  }
}

CostModel::Running CostModel::running_after(const Consume& consume, double chain,
                                            int threads) const {
  Running out;
  for (const Statement& inner : consume.body)
    if (const auto* mma = inner.as<Mma>()) out.sums.insert(mma->acc);
  if (!out.sums.empty() && is_between_roles(sites, consume.pipeline)) out.cycles = chain;
  out.alike = 1 - 128.0 / std::max(128, threads);
  return out;
}

// What is done while sums run on costs nothing; what needs them, as far as it is `alike`.
void CostModel::hide(Work& one, const std::vector<TensorUse>& uses, Running& running) {
  const auto is_sum = [&](const TensorUse& use) { return running.sums.contains(use.tensor); };
  const bool needs = std::ranges::any_of(uses, is_sum);
  const double hidden = std::min(one.chain, running.cycles);
  one.chain -= hidden * (needs ? running.alike : 1);
  running.cycles -= hidden;
}

// By the threads themselves.
bool CostModel::moves_registers(const Copy& copy) const {
  const Sides sides = sides_of(program, copy);
  return sides.global && sides.registers;
}

Work CostModel::cost_of(const Statement&, const For& node, int threads) {
  const int64_t step = node.step.evaluate(first_);
  const double trips = trips_of(node);
  if (step < 1 || trips <= 0) return {};
  // A few rounds that a condition keeps apart are followed one by one.
  const auto branches_by_round = [&](const Statement& s) {
    const auto* branch = s.as<If>();
    if (!branch) return false;
    return branch->left.depends_on(node.variable) || branch->right.depends_on(node.variable);
  };
  const bool apart = trips <= 4 && std::ranges::any_of(node.body, branches_by_round);
  loops_.push_back({node.variable, apart ? 1 : trips});
  Work work;
  const auto spread = spread_;
  const int64_t rounds = apart ? std::llround(trips) : 1;
  for (int64_t round = 0; round < rounds; ++round) {
    first_[node.variable] = node.begin.evaluate(first_) + round * step;
    auto begins = wave_.values(node.begin);
    for (int64_t& begin : begins)
      begin += round * step;
    wave_.columns[node.variable] = std::move(begins);
    if (apart) spread_ = {first_};
    work.add(walk(node.body, threads), loops_.back().trips);
  }
  spread_ = spread;
  loops_.pop_back();
  return work;
}

// Of all blocks, each in a turn of its own: the most where they take turns, the mean where tiles
// are not alike, as those of a triangle.
double CostModel::trips_of(const For& node) {
  std::vector<double> trips;
  for (Environment& at : spread_) {
    const int64_t begin = node.begin.evaluate(at);
    const int64_t step = std::max<int64_t>(1, node.step.evaluate(at));
    const int64_t extent = std::max<int64_t>(0, node.end.evaluate(at) - begin);
    const int64_t count = ceil_div(extent, step);
    const int64_t turn = scattered(trips.size(), std::max<int64_t>(1, count));
    at[node.variable] = begin + turn * step;
    trips.push_back(as_double(count));
  }
  const auto [least, most] = std::ranges::minmax(trips);
  if (most <= least + 1) return most;
  const double sum = std::reduce(trips.begin(), trips.end());
  return sum / as_double(trips.size());
}

Work CostModel::cost_of(const Statement&, const If& node, int threads) {
  Work work;
  const auto left = wave_.values(node.left);
  const auto right = wave_.values(node.right);
  double holds = 0;
  for (size_t i = 0; i < wave_.blocks; ++i)
    holds += left[i] < right[i] ? 1 : 0;
  const bool exact =
      !loops_.empty() && loops_.back().trips == 1;  // the round is known, not the first of many
  double part = left[0] < right[0] ? 1 : 0.5;
  if (exact) part = holds / as_double(wave_.blocks);
  if (part > 0) work.add(walk(node.body, threads), part);
  return work;
}

Work CostModel::cost_of(const Statement&, const Roles& node, int) {
  Work work;
  double chain = 0;
  for (const Role& role : node.roles) {
    const Work one = walk(role.body, role.warps * 32);
    work.add(one);
    chain = std::max(chain, one.chain);
  }
  work.chain = chain;
  return work;
}

// Nobody waits for a fill where it is started, but for the stage: the latency and the transfer,
// hidden by the other stages.
Work CostModel::cost_of(const Statement&, const Produce& node, int threads) {
  Work work = walk(node.body, threads);
  // A stage that blocks share is free, and full, when the slowest of them says so.
  const bool shared = std::ranges::any_of(node.body, [](const Statement& s) {
    const auto* copy = s.as<Copy>();
    return copy && !copy->multicast.empty();
  });
  const double latency = rates_.memory_latency * (shared ? 1.5 : 1);
  fill_[node.pipeline] = latency + work.l2_bytes / rates_.l2_bytes;
  work.chain = work.issue / std::max(1, threads / 32);
  return work;
}

Work CostModel::cost_of(const Statement&, const Consume& node, int threads) {
  // matrix instructions that are not waited for here, and all
  Work matrix;
  Work work;
  for (const Statement& statement : node.body) {
    const Work one =
        statement.visit([&](const auto& each) { return cost_of(statement, each, threads); });
    work.add(one);
    if (node.mma_in_flight > 0 && statement.is<Mma>()) matrix.add(one);
  }
  // While one warpgroup's are under way, another fills the registers that its own will read.
  const double others = work.chain - matrix.chain;
  const double groups = std::max(1.0, threads / 128.0);
  work.chain = std::max(matrix.chain, matrix.chain / groups + others);
  const bool roles = is_between_roles(sites, node.pipeline);
  const double ahead = program.pipeline(node.pipeline).stages - (roles ? node.mma_in_flight : 1);
  // The producing role comes first in the program; where a loop consumes before it produces, the
  // fill of its last round is known.
  const double with_barriers = work.chain + 2 * rates_.barrier_cycles;
  const double stage_filled = fill_[node.pipeline] / std::max(1.0, ahead);
  work.chain = std::max(with_barriers, stage_filled);
  work.issue += 12.0 * threads / 32;
  return work;
}

std::string_view Cost::bound() const {
  const double units = std::max({tensor, issue, shared, l2}) * resident;
  if (dram_us > 0.8 * us) return "dram";
  if (chain > units) return "latency";
  if (tensor * resident >= units) return "tensor";
  if (shared * resident >= units) return "shared";
  return l2 * resident >= units ? "l2" : "issue";
}

Cost predict(const SynthesisContext& question, const Solution& solution) {
  return CostModel(question, solution).run();
}
}  // namespace warploom::synth
