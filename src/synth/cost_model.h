// The cost model while it walks a program (cost.cpp says what it models). Private to this room.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>
#include "synth/solve.h"

namespace warploom::synth {
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
    std::vector<int64_t> other(blocks, known.value_or(0));
    if (!known) other = values(index.right());
    for (size_t i = 0; i < blocks; ++i)
      all[i] = tile::compute(index.op(), all[i], other[i]);
    return all;
  }
};

inline double elements_of(const Tile& tile) {
  return static_cast<double>(element_count(tile.extent));
}

class CostModel : SynthesisContext {
 public:
  CostModel(const SynthesisContext& question, const Solution& solution)
      : SynthesisContext(question), solution_(solution) {}

  Cost run();

 private:
  double bytes_in(const Tile& tile) const;
  void bind_block(Environment& at, int64_t block) const;

  // Layouts and registers.
  double values(TensorId id) const;
  int resident_blocks() const;
  double registers_named(const Statement& statement, const std::set<TensorId>& accumulators) const;
  double sectors(const Tile& global, const TvLayout& lanes, int vector) const;
  template <class Starts> double inside(const Tile& global, const Starts& start_along) const;

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

  // Sums that are under way while the statements behind them go on.
  struct Running {
    double cycles = 0;  // that are left of them
    double alike = 0;   // the part of these that hides even what needs the sums
    std::set<TensorId> sums = {};
  };

  Work walk(const Body& body, int threads);
  bool is_load(const Statement& statement) const;
  bool is_before_consume(const Body& body, size_t i) const;
  static double awaited(const Statement& statement, const std::vector<TensorUse>& uses,
                        const Transfers& under_way);
  void transfer(const Copy& copy, double ready, Work& one, Transfers& under_way) const;
  Running running_after(const Consume& consume, double chain, int threads) const;
  static void hide(Work& one, const std::vector<TensorUse>& uses, Running& running);
  bool moves_registers(const Copy& copy) const;
  Work cost_of(const Statement&, const For& node, int threads);
  double trips_of(const For& node);
  Work cost_of(const Statement&, const If& node, int threads);
  Work cost_of(const Statement&, const Roles& node, int);
  Work cost_of(const Statement&, const Produce& node, int threads);
  Work cost_of(const Statement&, const Consume& node, int threads);
  Work cost_of(const Statement&, const Fill& node, int threads);
  Work cost_of(const Statement&, const Map& node, int threads);
  Work compute(double per_thread, int threads) const;
  double operations(const Value& value) const;
  Work cost_of(const Statement&, const Reduce& node, int threads);
  Work cost_of(const Statement& statement, const Scan& node, int threads);
  Work cost_of(const Statement& statement, const ConvertLayout& node, int threads);
  Work cost_of(const Statement&, const ClusterReduce& node, int threads);

  Work cost_of(const Statement&, const Signal&, int) { return wait(); }

  Work cost_of(const Statement&, const Wait&, int) { return wait(); }

  Work wait() const { return {.chain = rates_.memory_latency}; }  // for other blocks

  Work cost_of(const Statement&, const ClusterSync&, int);

  Work cost_of(const Statement&, const Bitcast&, int) { return {}; }

  Work cost_of(const Statement& statement, const Mma& node, int threads);
  Work cost_of(const Statement& statement, const Copy& node, int threads);
  double dram_bytes() const;
  void count_boxes(const Tile& tile);

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
}  // namespace warploom::synth
