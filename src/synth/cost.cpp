// Cost: the predicted time of a program under a solution, so that solutions and schedules can be
// ordered without running them.
//
// The model walks the program once, as block 0 would run it, and adds up what the block asks of
// each unit of its multiprocessor: tensor core, issue slots, shared memory (wavefronts, conflicts
// included), bytes from the L2 (whole 32-byte sectors, as the layout's lanes touch them); and
// beside these the chain of latencies that one thread of control waits for: loads where their
// values are first needed, stores at the end, and a pipeline of s slots hides a slot's latency s
// times. Blocks that share a multiprocessor add their units and overlap their chains. DRAM traffic
// is counted by the wave: the distinct boxes that the blocks of one wave read.
//
//   round = max(chain, resident · max(tensor, issue, shared, l2))
//   time = the greater of rounds · round / clock and DRAM bytes / bandwidth, and a tenth of the
//   lesser
//
// Units: microseconds in `us`, cycles elsewhere. Rates: target/capabilities.h. How well it orders
// real candidates: docs/compiler.md.
#include "synth/solve.h"

namespace warploom::synth {
namespace {
constexpr double kOverlap =
    0.1;  // of the lesser of both, that a block's work and DRAM do not hide of each other

using Environment = std::map<std::string, int64_t>;

struct Work {  // of one block
  double tensor = 0;
  double issue = 0;
  double shared = 0;
  double l2_bytes = 0;
  double chain = 0;

  void add(const Work& other, double times = 1) {
    tensor += times * other.tensor;
    issue += times * other.issue;
    shared += times * other.shared;
    l2_bytes += times * other.l2_bytes;
    chain += times * other.chain;
  }
};

struct Loop {
  std::string variable;
  double trips;
};

// Blocks that run at the same time, the first of them first: every variable's value in each.
struct Wave {
  size_t blocks = 0;
  std::map<std::string, std::vector<int64_t>> columns = {};

  std::vector<int64_t> values(const Index& index) const {
    if (const auto known = index.constant()) return std::vector(blocks, *known);
    if (index.op() == tile::IndexOp::variable) {
      const auto found = columns.find(index.name());
      return found == columns.end() ? std::vector<int64_t>(blocks) : found->second;
    }
    std::vector<int64_t> all = values(index.left());
    const auto known = index.right().constant();
    const std::vector<int64_t> other = known ? std::vector<int64_t>() : values(index.right());
    for (size_t i = 0; i < blocks; ++i)
      all[i] = tile::compute(index.op(), all[i], known ? *known : other[i]);
    return all;
  }
};

// Below `count`, without a pattern.
int64_t scattered(size_t i, int64_t count) {
  return static_cast<int64_t>(i * 0x9E3779B1u >> 8) % count;
}

double elements_of(const Tile& tile) {
  return static_cast<double>(element_count(tile.extent));
}

class Model : SynthesisContext {
 public:
  Model(const SynthesisContext& question, const Solution& solution)
      : SynthesisContext(question), solution_(solution) {}

  Cost run() {
    Cost cost;
    cost.resident = resident_blocks();
    const double num_sms =
        static_cast<double>(capabilities.cluster_processors(cluster_size(program)));
    const double running = std::min(blocks_, num_sms);
    const double at_once = num_sms * cost.resident;
    const double whole = std::floor(blocks_ / at_once);
    wave_.blocks = static_cast<size_t>(std::clamp(std::min(blocks_, at_once), 1.0, 256.0));
    for (size_t block = 0; block < wave_.blocks; ++block) {
      Environment at;
      bind_block(at, static_cast<int64_t>(block));
      for (const auto& [name, value] : at) wave_.columns[name].push_back(value);
      if (block == 0) first_ = at;
    }
    const auto all = static_cast<int64_t>(blocks_);
    const auto spread = std::min<int64_t>(all, 64);
    for (int64_t i = 0; i < spread; ++i)
      bind_block(spread_.emplace_back(), (i * all + scattered(i, all)) / spread);
    const Work block = walk(program.body, program.warps * 32);
    cost.tensor = block.tensor;
    cost.issue = block.issue / 4;
    cost.shared = block.shared;
    cost.l2 = block.l2_bytes / std::min(rates_.l2_bytes, rates_.l2_total_bytes / running);
    cost.chain = block.chain + rates_.block_cycles;
    const double units = std::max({cost.tensor, cost.issue, cost.shared, cost.l2});
    const auto round = [&](double resident) { return std::max(cost.chain, resident * units); };
    const double cycles =
        whole * round(cost.resident) +
        (blocks_ > whole * at_once ? round(std::ceil((blocks_ - whole * at_once) / num_sms)) : 0);
    cost.dram_us = dram_bytes() / (capabilities.dram_gbs * 1e3 * rates_.dram_fraction);
    const double own = cycles / (rates_.clock_ghz * 1e3);
    cost.us =
        rates_.launch_us + std::max(own, cost.dram_us) + kOverlap * std::min(own, cost.dram_us);
    return cost;
  }

 private:
  double bytes_in(const Tile& tile) const {
    return elements_of(tile) * bits_of(program.tensor(tile.tensor).dtype) / 8;
  }

  void bind_block(Environment& at, int64_t block) const {
    at["cluster_rank"] = block % cluster_size(program);
    for (int d = 0; d < 3; block /= program.grid[d++])
      at[tile::block(d).name()] = block % program.grid[d];
  }

  // Layouts and registers.

  double values(TensorId id) const {
    const auto found = solution_.registers.find(id);
    return found == solution_.registers.end() ? 1 : static_cast<double>(found->second.values());
  }

  // What a thread holds at once: accumulators, and the most that any one statement names.
  int resident_blocks() const {
    // by role
    std::map<int, double> kept;
    std::map<int, double> most;
    std::set<TensorId> accumulators;
    for (const Site& site : sites)
      if (const auto* mma = site.statement->as<Mma>(); mma && accumulators.insert(mma->acc).second)
        kept[site.role] += values(mma->acc);
    for (const Site& site : sites) {
      double named = 0;
      std::set<TensorId> seen;
      for (const TensorUse& use : uses_of(*site.statement))
        if (const Tensor& tensor = program.tensor(use.tensor); tensor.scope == Scope::reg &&
                                                               !accumulators.count(use.tensor) &&
                                                               seen.insert(use.tensor).second)
          named += values(use.tensor) * bits_of(tensor.dtype) / 32;
      most[site.role] = std::max(most[site.role], named);
    }
    double registers = 0;
    for (const auto& [role, amount] : most)
      registers = std::max(registers, 32 + amount + kept[role]);
    if (const Roles* roles = roles_of(program);
        roles && std::ranges::any_of(roles->roles, &Role::registers))
      registers = 168;  // the budgets move registers between roles, about this mean
    const double threads = program.warps * 32;
    const double by_registers =
        capabilities.registers / (std::min(255.0, std::ceil(registers / 8) * 8) * threads);
    const double by_shared = static_cast<double>(capabilities.shared_bytes) /
                             static_cast<double>(solution_.shared_bytes + 1024);
    return std::max(1, static_cast<int>(std::min({by_registers, by_shared, 2048 / threads, 32.0})));
  }

  // 32-byte sectors that the lanes of one warp touch in one access.
  double sectors(const Tile& global, const TvLayout& lanes, int vector) const {
    const Tensor& tensor = program.tensor(global.tensor);
    std::set<int64_t> touched;
    for (int64_t lane = 0; lane < std::min<int64_t>(32, lanes.threads()); ++lane) {
      const auto at = lanes.coord(lane, 0);
      int64_t element = tensor.packed ? solution_.packed.at(global.tensor).element_offset(at) : 0;
      for (size_t d = 0; d < at.size() && !tensor.packed; ++d)
        element += at[d] * global.step_along(d) * tensor.strides[d];
      const int64_t first = element * bits_of(tensor.dtype) / 8;
      const int64_t last = first + bytes_of(tensor.dtype, vector) - 1;
      for (int64_t sector = first / 32; sector <= last / 32; ++sector) touched.insert(sector);
    }
    return static_cast<double>(touched.size());
  }

  // The part of a global box that lies inside its tensor: what lies outside is not moved.
  template <class Starts> double inside(const Tile& global, const Starts& start_along) const {
    const Tensor& tensor = program.tensor(global.tensor);
    double part = 1;
    for (size_t d = 0; d < global.extent.size(); ++d) {
      if (global.gathered_along(d)) continue;
      const int64_t start = start_along(d);
      const int64_t step = global.step_along(d);
      const int64_t end =
          std::clamp<int64_t>((tensor.shape[d] - start + step - 1) / step, 0, global.extent[d]);
      const int64_t kept = end - std::clamp<int64_t>((step - 1 - start) / step, 0, end);
      part *= static_cast<double>(kept) / static_cast<double>(global.extent[d]);
    }
    return part;
  }

  // Statements.

  // What is under way between memory and registers while a thread goes on: it waits where it first
  // needs what was loaded.
  struct Transfers {
    double free = 0;  // when the way from the L2 is
    std::map<TensorId, double> arrive = {};

    double wait(const std::vector<TensorUse>& uses) const {
      double until = 0;
      for (const TensorUse& use : uses)
        if (const auto found = arrive.find(use.tensor); found != arrive.end())
          until = std::max(until, found->second);
      return until;
    }
  };

  // What is loaded in front of a Consume arrives while that waits. Behind one that lets matrix
  // instructions run on, what does not need their sums is done meanwhile; else, as far as the other
  // warpgroups' are under way. So is what does not need what a cluster makes.
  Work walk(const Body& body, int threads) {
    Work work;
    Transfers under_way;
    double arrives = 0;
    double runs_on = 0;
    double alike = 0;
    std::set<TensorId> sums;
    for (size_t i = 0; i < body.size(); ++i) {
      Work one = body[i].visit([&](const auto& node) { return cost_of(body[i], node, threads); });
      const auto is_load = [&](const Statement& s) {
        const auto* copy = s.as<Copy>();
        return copy && program.tensor(copy->src.tensor).scope == Scope::global;
      };
      const auto next =
          std::find_if_not(body.begin() + static_cast<ptrdiff_t>(i), body.end(),
                           [&](const Statement& s) { return is_load(s) || s.is<Fill>(); });
      if (is_load(body[i]) && next != body.end() && next->is<Consume>())
        arrives = std::max(arrives, std::exchange(one.chain, 0));
      if (body[i].is<Consume>()) one.chain = std::max(one.chain, std::exchange(arrives, 0));
      const auto uses = uses_of(body[i]);
      const bool alone = body[i].is<For>() || body[i].is<If>() || body[i].is<Roles>();
      double until = alone ? 0 : under_way.wait(uses);
      if (alone)
        for (const auto& [tensor, at] : under_way.arrive) until = std::max(until, at);
      if (const auto* copy = body[i].as<Copy>(); copy && one.chain > 0 && moves_registers(*copy)) {
        const double latency = is_load(body[i]) ? rates_.memory_latency : rates_.store_latency;
        under_way.free = std::max({under_way.free, work.chain, until}) + one.chain - latency;
        under_way.arrive.erase(copy->dst.tensor);
        if (is_load(body[i])) {
          under_way.arrive[copy->dst.tensor] = under_way.free + latency;
          one.chain = one.issue / 4;
        } else
          one.chain -= latency;
      }
      one.chain += std::max(0.0, until - work.chain);
      if (const auto* consume = body[i].as<Consume>()) {
        runs_on = one.chain;
        sums.clear();
        for (const Statement& inner : consume->body)
          if (const auto* mma = inner.as<Mma>()) sums.insert(mma->acc);
        if (sums.empty() || !is_between_roles(sites, consume->pipeline)) runs_on = 0;
        alike = 1 - 128.0 / std::max(128, threads);
      } else if (const auto* meeting = body[i].as<ClusterReduce>()) {
        runs_on = rates_.cluster_cycles;
        alike = 0;
        sums = {meeting->dst};
      } else {
        const bool needs = std::ranges::any_of(
            uses, [&](const TensorUse& use) { return sums.count(use.tensor) > 0; });
        const double hidden = std::min(one.chain, runs_on);
        one.chain -= hidden * (needs ? alike : 1);
        runs_on -= hidden;
      }
      work.add(one);
    }
    if (loops_.empty() && under_way.free > 0)
      work.chain = std::max(work.chain, under_way.free + rates_.store_latency);
    return work;
  }

  // By the threads themselves.
  bool moves_registers(const Copy& copy) const {
    const Sides sides = sides_of(program, copy);
    return sides.global && sides.registers;
  }

  Work cost_of(const Statement&, const For& node, int threads) {
    const int64_t step = node.step.evaluate(first_);
    const double trips = trips_of(node);
    if (step < 1 || trips <= 0) return {};
    // A few rounds that a condition keeps apart are followed one by one.
    const bool apart = trips <= 4 && std::ranges::any_of(node.body, [&](const Statement& s) {
                         const auto* branch = s.as<If>();
                         return branch && (branch->left.depends_on(node.variable) ||
                                           branch->right.depends_on(node.variable));
                       });
    loops_.push_back({node.variable, apart ? 1 : trips});
    Work work;
    const auto spread = spread_;
    for (int64_t round = 0; round < (apart ? std::llround(trips) : 1); ++round) {
      first_[node.variable] = node.begin.evaluate(first_) + round * step;
      std::vector<int64_t> begins = wave_.values(node.begin);
      for (int64_t& begin : begins) begin += round * step;
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
  double trips_of(const For& node) {
    std::vector<double> trips;
    for (Environment& at : spread_) {
      const int64_t begin = node.begin.evaluate(at);
      const int64_t step = std::max<int64_t>(1, node.step.evaluate(at));
      const int64_t count = ceil_div(std::max<int64_t>(0, node.end.evaluate(at) - begin), step);
      at[node.variable] = begin + scattered(trips.size(), std::max<int64_t>(1, count)) * step;
      trips.push_back(static_cast<double>(count));
    }
    const auto [least, most] = std::ranges::minmax(trips);
    return most <= least + 1
               ? most
               : std::reduce(trips.begin(), trips.end()) / static_cast<double>(trips.size());
  }

  Work cost_of(const Statement&, const If& node, int threads) {
    Work work;
    const auto left = wave_.values(node.left);
    const auto right = wave_.values(node.right);
    double holds = 0;
    for (size_t i = 0; i < wave_.blocks; ++i) holds += left[i] < right[i] ? 1 : 0;
    const bool exact =
        !loops_.empty() && loops_.back().trips == 1;  // the round is known, not the first of many
    const double part = exact                ? holds / static_cast<double>(wave_.blocks)
                        : left[0] < right[0] ? 1
                                             : 0.5;
    if (part > 0) work.add(walk(node.body, threads), part);
    return work;
  }

  Work cost_of(const Statement&, const Roles& node, int) {
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

  // Nobody waits for a fill where it is started, but for the slot: the latency and the transfer,
  // hidden by the other slots.
  Work cost_of(const Statement&, const Produce& node, int threads) {
    Work work = walk(node.body, threads);
    // A slot that blocks share is free, and full, when the slowest of them says so.
    const bool shared = std::ranges::any_of(node.body, [](const Statement& s) {
      const auto* copy = s.as<Copy>();
      return copy && !copy->multicast.empty();
    });
    fill_[node.pipeline] =
        rates_.memory_latency * (shared ? 1.5 : 1) + work.l2_bytes / rates_.l2_bytes;
    work.chain = work.issue / std::max(1, threads / 32);
    return work;
  }

  Work cost_of(const Statement&, const Consume& node, int threads) {
    // matrix instructions that are not waited for here, and all
    Work matrix;
    Work work;
    for (const Statement& statement : node.body) {
      const Work one =
          statement.visit([&](const auto& each) { return cost_of(statement, each, threads); });
      work.add(one);
      if (node.lag > 0 && statement.is<Mma>()) matrix.add(one);
    }
    // While one warpgroup's are under way, another fills the registers that its own will read.
    const double others = work.chain - matrix.chain;
    const double groups = std::max(1.0, threads / 128.0);
    work.chain = std::max(matrix.chain, matrix.chain / groups + others);
    const bool roles = is_between_roles(sites, node.pipeline);
    const double slots = program.pipeline(node.pipeline).stages - (roles ? node.lag : 1);
    // The producing role comes first in the program; where a loop consumes before it produces, the
    // fill of its last round is known.
    work.chain = std::max(work.chain + 2 * rates_.barrier_cycles,
                          fill_[node.pipeline] / std::max(1.0, slots));
    work.issue += 12.0 * threads / 32;
    return work;
  }

  Work cost_of(const Statement&, const Fill& node, int threads) {
    return compute(values(node.dst), threads);
  }

  Work cost_of(const Statement&, const Map& node, int threads) {
    return compute(values(node.dst) * operations(node.value), threads);
  }

  Work compute(double per_thread, int threads) const {
    return {.issue = per_thread * threads / 32,
            .chain = per_thread * std::max(1.0, threads / 128.0)};
  }

  double operations(const Value& value) const {
    double count = 0;
    if (value.kind == Value::Kind::op) {
      static constexpr std::array kCheap = {ValueOp::add,   ValueOp::sub,  ValueOp::mul,
                                            ValueOp::max,   ValueOp::min,  ValueOp::fma,
                                            ValueOp::where, ValueOp::less, ValueOp::equal};
      count = std::ranges::count(kCheap, value.op) > 0 ? 1 : rates_.special_issue;
    }
    for (const Value& operand : value.operands) count += operations(operand);
    return std::max(count, 0.5);
  }

  Work cost_of(const Statement&, const Reduce& node, int threads) {
    const TvLayout& source = solution_.registers.at(node.src);
    const auto axis = static_cast<size_t>(node.axis);
    int64_t lanes = 1;
    int64_t warps = 1;
    for (const layout::ThreadDigit& digit : thread_digits(source, true))
      if (digit.step[axis] != 0) (digit.of_lane() ? lanes : warps) *= digit.extent;
    Work work = compute(values(node.src), threads);
    const double results = values(node.dst);
    const double steps = std::log2(static_cast<double>(lanes));
    work.issue += 3 * results * steps * threads / 32;
    work.chain += results * steps * rates_.shuffle_cycles / std::min(results, 4.0);
    if (warps > 1)
      work.chain += 2 * rates_.barrier_cycles + 2 * rates_.shared_latency +
                    static_cast<double>(warps) * results;
    return work;
  }

  // A scan is a reduction whose steps every element takes part in; a rearrangement crosses shared
  // memory, or shuffles.
  Work cost_of(const Statement& statement, const Scan& node, int threads) {
    Work work = cost_of(statement, Reduce{node.dst, node.src, node.axis, node.op}, threads);
    work.add(compute(values(node.src), threads));
    return work;
  }

  Work cost_of(const Statement& statement, const ConvertLayout& node, int threads) {
    Work work = compute(values(node.src), threads);
    const auto choice = solution_.choices.find(statement.id);
    if (choice == solution_.choices.end() || choice->second.scratch.dims.empty()) return work;
    work.shared = 2 * values(node.src) * threads * bits_of(program.tensor(node.src).dtype) / 8 /
                  rates_.shared_bytes;
    work.chain += 2 * rates_.barrier_cycles + rates_.shared_latency + work.shared;
    return work;
  }

  Work cost_of(const Statement&, const ClusterReduce& node, int threads) {
    Work work = compute(values(node.dst) * static_cast<double>(cluster_size(program)), threads);
    work.chain += rates_.cluster_cycles;
    return work;
  }

  // What only waits for others, or costs nothing.
  Work cost_of(const Statement&, const Of<Signal, Wait> auto&, int) {
    return {.chain = rates_.memory_latency};
  }

  Work cost_of(const Statement&, const ClusterSync&, int) {
    return {.chain = rates_.cluster_cycles};
  }

  Work cost_of(const Statement&, const Bitcast&, int) { return {}; }

  Work cost_of(const Statement& statement, const Mma& node, int threads) {
    const Instruction& row = *solution_.choices.at(statement.id).instruction;
    const auto& acc = program.tensor(node.acc).shape;
    const double k = elements_of(node.a) / static_cast<double>(acc[0]);
    const double m = static_cast<double>(acc[0]);
    const double n = static_cast<double>(acc[1]);
    if (row.method == Method::warpgroup) {
      const double groups = threads / 128.0;
      const double calls = m / row.m / groups * (k / row.k);       // of one warpgroup
      const double bytes = 32 * (n + (row.a_shared ? row.m : 0));  // of operands, a call
      const double tensor = calls * groups * row.cycles * n / 256;
      const double shared = calls * groups * bytes / rates_.shared_bytes;
      return {.tensor = tensor,
              .issue = calls * groups * 4 * 4,
              .shared = shared,
              .chain = std::max(tensor, shared) + rates_.shared_latency};
    }
    const double calls = m / row.m * (n / std::max(1, row.n)) * (k / row.k) /
                         (threads / static_cast<double>(row.threads));
    const double warps = threads / 32.0;
    const double cycles = row.method == Method::warp ? rates_.warp_matrix_cycles : 1.1;
    return {.tensor = row.method == Method::warp ? calls * cycles * warps / 4 : 0,
            .issue = calls * warps * (row.method == Method::warp ? 1 : 1.1),
            .chain = calls * cycles * std::max(1.0, warps / 4)};
  }

  Work cost_of(const Statement& statement, const Copy& node, int threads) {
    const Sides sides = sides_of(program, node);
    if (sides.global) count_boxes(*sides.global);
    if (!sides.global && !sides.shared) {
      const bool rounds = program.tensor(node.dst.tensor).dtype == Dtype::tf32;
      return compute(values(node.dst.tensor) * (rounds ? 2 * rates_.special_issue : 1), threads);
    }
    const InstructionChoice& choice = solution_.choices.at(statement.id);
    const Tile& memory = sides.global ? *sides.global : *sides.shared;
    const double warps = threads / 32.0;
    const double part =
        sides.global ? inside(memory, [&](size_t d) { return memory.offset[d].evaluate(first_); })
                     : 1;
    Work work;
    if (choice.by(Method::tensor_copy)) {
      work.l2_bytes = bytes_in(memory) * part;
      for (size_t d = 0; d < 3; ++d)  // one fetch serves the blocks that share it
        if (node.multicast.find("xyz"[d]) != std::string::npos)
          work.l2_bytes /= static_cast<double>(program.cluster[d]);
      work.shared = bytes_in(memory) / rates_.shared_bytes;
      work.issue = 16;
      if (!sides.load)
        work.chain =
            rates_.store_latency + 2 * rates_.barrier_cycles + work.l2_bytes / rates_.l2_bytes;
      return work;
    }
    const TvLayout& tv =
        sides.registers ? solution_.registers.at(sides.registers->tensor) : choice.mapping;
    const TvLayout lanes = seen_from(tv, memory.extent);
    if (sides.global) {
      const double accesses = std::max(1.0, static_cast<double>(tv.values()) / choice.vector);
      const double touched = sectors(memory, lanes, choice.vector);
      work.issue = accesses * warps * rates_.access_issue;
      work.l2_bytes = accesses * warps * touched * 32 * part;
      work.shared = accesses * warps * std::max(1.0, touched * 32 / rates_.shared_bytes);
      if (sides.shared) work.shared += bytes_in(*sides.shared) / rates_.shared_bytes;
      const double waiting = sides.load ? rates_.memory_latency : rates_.store_latency;
      work.chain = waiting + std::max(work.l2_bytes / rates_.l2_bytes, work.issue / 4);
      return work;
    }
    const layout::MemoryLayout& shared = solution_.shared.at(memory.tensor);
    const bool matrix = choice.by(Method::matrix);
    const double bytes = shared.element_bits / 8.0;
    const double width = matrix ? 4 * choice.vector : choice.vector * bytes;  // a lane, an access
    const double accesses = std::max(1.0, static_cast<double>(lanes.values()) * bytes / width);
    const double ways =
        matrix ? 1
               : layout::bank_conflict_ways(lanes, shared, std::max(1, static_cast<int>(width)));
    work.issue = accesses * warps * rates_.access_issue / 2;
    work.shared = accesses * warps * std::max(1.0, 32.0 * width / rates_.shared_bytes) * ways;
    work.chain = rates_.shared_latency + work.shared + (sides.load ? 0 : rates_.barrier_cycles);
    return work;
  }

  // Bytes that must come from DRAM, and go there: distinct boxes of one wave of blocks, times the
  // waves.
  double dram_bytes() const {
    const auto size_of = [&](TensorId id) {
      const Tensor& tensor = program.tensor(id);
      return static_cast<double>(span_of(tensor.shape, tensor.strides)) * bits_of(tensor.dtype) / 8;
    };
    double total = 0;
    double held = 0;
    for (const auto& [id, read] : traffic_) held += std::min(read, size_of(id));
    const bool fits = held < 0.7 * static_cast<double>(capabilities.l2_bytes);
    for (const auto& [id, read] : traffic_) total += fits ? std::min(read, size_of(id)) : read;
    return total;
  }

  void count_boxes(const Tile& tile) {
    std::vector<std::vector<int64_t>> starts;  // along each dimension
    for (const Index& offset : tile.offset) starts.push_back(wave_.values(offset));
    const auto before = [&](size_t a, size_t b) {
      const auto differs = [&](const auto& along) { return along[a] != along[b]; };
      const auto along = std::ranges::find_if(starts, differs);
      return along != starts.end() && (*along)[a] < (*along)[b];
    };
    std::set<size_t, decltype(before)> boxes(before);  // one block of each
    double part = 0;
    for (size_t block = 0; block < wave_.blocks; ++block)
      if (boxes.insert(block).second)
        part += inside(tile, [&](size_t d) { return starts[d][block]; });
    double bytes = part * bytes_in(tile) * (blocks_ / static_cast<double>(wave_.blocks));
    for (const Loop& loop : loops_)
      if (std::ranges::any_of(tile.offset,
                              [&](const Index& o) { return o.depends_on(loop.variable); }))
        bytes *= loop.trips;
    traffic_[tile.tensor] += bytes;
  }

  const Solution& solution_;
  const target::Rates& rates_ = capabilities.rates;
  const double blocks_ = static_cast<double>(element_count(program.grid));
  Wave wave_;
  Environment first_;                // of its first block
  std::vector<Environment> spread_;  // of blocks anywhere
  std::vector<Loop> loops_;          // around the statement
  std::map<PipelineId, double> fill_;
  std::map<TensorId, double> traffic_;
};
}  // namespace

std::string_view Cost::bound() const {
  const double units = std::max({tensor, issue, shared, l2}) * resident;
  if (dram_us > 0.8 * us) return "dram";
  if (chain > units) return "latency";
  return tensor * resident >= units   ? "tensor"
         : shared * resident >= units ? "shared"
         : l2 * resident >= units     ? "l2"
                                      : "issue";
}

Cost predict(const SynthesisContext& question, const Solution& solution) {
  return Model(question, solution).run();
}
}  // namespace warploom::synth
