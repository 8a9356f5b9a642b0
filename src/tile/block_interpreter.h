// One block of a program while it is interpreted. Private to this room (interpret.cpp,
// interpret_elements.cpp, interpret_statements.cpp).
//
// Elements are kept as numbers that are exact values of the tensor's type, integers of 64 bits
// among them, or nothing where none was ever written. Shared and register tensors begin unwritten;
// a stage of a pipeline begins unwritten each time it is produced.
#pragma once
#include <array>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <vector>
#include "base/error.h"
#include "tile/interpret.h"
#include "tile/program.h"

namespace warploom::tile {
using Number = long double;
static_assert(std::numeric_limits<Number>::digits >= 64, "every integer of 64 bits");
using Values = std::vector<Number>;
using Storage = std::shared_ptr<std::vector<std::optional<Number>>>;  // null: never written

struct Queue {
  std::vector<std::vector<Storage>> stages;  // [stage][tensor of the pipeline]
  std::map<int, size_t> taken;               // stages consumed so far, by role (-1: no roles)
};

struct Turns {
  std::function<void()> others;  // returns when it is one's turn again
  int64_t events = 0;            // that somebody may wait for, so far
  bool stuck = true;             // there will be no other
};

class BlockInterpreter {
 public:
  BlockInterpreter(const Program& program, const Buffers& buffers, Turns& turns,
                   std::deque<BlockInterpreter>& cluster, const std::array<int64_t, 3>& first)
      : program_(program), buffers_(buffers), turns_(turns), cluster_(cluster) {
    auto rank = static_cast<int64_t>(cluster.size());
    variables_["cluster_rank"] = rank;
    for (size_t i = 0; i < 3; ++i) {
      const std::string name = tile::block(static_cast<int>(i)).name();
      variables_[name] = first[i] + rank % program.cluster[i];
      rank /= program.cluster[i];
    }
  }

  Status run();

 private:
  tl::unexpected<Error> undefined(const std::string& message, const std::string& expected = {},
                                  const std::string& found = {}) const;
  Result<int64_t> value_of(const Index& index) const;
  Status for_elements(const Tile& tile, const auto& visit) const;
  Result<Values> read(const Tile& tile, double fill, const BlockInterpreter& holder) const;

  Result<Values> read(const Tile& tile) const { return read(tile, 0, *this); }

  Result<Values> read(TensorId tensor) const { return read(whole(program_, tensor)); }

  Status write(const Tile& tile, const Values& values, bool whole = false,
               std::optional<ReduceOp> combine = {});
  Status write(TensorId tensor, const Values& values, bool whole_numbers = false);

  bool holds_integers(TensorId tensor) const { return is_integer(program_.tensor(tensor).dtype); }

  Result<std::vector<float>> evaluate(const Value& value, const std::vector<int64_t>& shape) const;
  Result<std::vector<int64_t>> evaluate_whole(const Value& value,
                                              const std::vector<int64_t>& shape) const;
  Status body(const Body& statements);
  Status run(const Copy& copy);
  Status run(const Signal& signal);
  Status run(const Wait& wait);
  Status run(const Fill& fill);
  Status run(const Map& map);
  Status run(const Mma& mma);
  Status run(const Of<Reduce, Scan> auto& node);
  Status run(const ConvertLayout& rearrange);
  Status run(const Bitcast& reinterpret);
  Status meet(std::string_view statement);

  Status run(const ClusterSync&) { return meet("cluster_sync"); }

  Status run(const ClusterReduce& s);
  Status run(const For& s);
  Status run(const If& s);
  Status run(const Produce& s);
  Status run(const Consume& s);
  Status run(const Roles& s);

  const Program& program_;
  const Buffers& buffers_;
  Turns& turns_;
  const std::deque<BlockInterpreter>& cluster_;
  std::map<std::string, int64_t> variables_;

  std::vector<Storage> tensors_ =
      std::vector<Storage>(program_.tensors.size());  // null where global, too

  std::vector<Queue> queues_ = std::vector<Queue>(program_.pipelines.size());
  std::array<Values, 2> left_;  // for the others of the cluster, at this meeting and the one before
  size_t meetings_ = 0;
  int role_ = -1;
  const Location* last_ = nullptr;  // of the statement that ran last
};
}  // namespace warploom::tile
