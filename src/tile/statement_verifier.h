// The rules of statements, checked from the place of each: what encloses it. Private to this room
// (verify_statements.cpp, verify_computation.cpp).
#pragma once
#include <map>
#include <string>
#include <vector>
#include "base/error.h"
#include "tile/program.h"

namespace warploom::tile {
std::string text_of(Dtype type);

// The place of the statement under check. A copy goes into each body.
class StatementVerifier {
 public:
  explicit StatementVerifier(const Program& program) : program_(program) {}

  Status body(const Body& statements, bool top);

 private:
  Status refuse(const std::string& message, const std::string& expected = {},
                const std::string& found = {}) const;

  const std::string& name(TensorId id) const { return program_.tensor(id).name; }

  const std::string& pipeline(PipelineId id) const { return program_.pipeline(id).name; }

  Status inside(const auto& node) const;
  bool differs(const Index& index, std::string_view along = "xyz") const;
  Status produced(const Statement& statement) const;
  Status use(TensorId id, bool written) const;
  Status check(const TensorUse& used, std::string_view statement) const;
  Status check(const Index& index) const;
  Status check(const Tile& tile) const;
  Status check_bytes(const Tile& tile) const;
  Status check_step(const Tile& tile) const;
  Status check_lookup(const Tile& tile) const;
  Status check(const Copy& copy) const;
  Status check_prepacked(const Tile& tile, const Tensor& src, const Tensor& dst) const;
  bool multiple(const Index& index, int64_t of) const;
  Status combined(const Tensor& dst, ReduceOp op) const;
  Status from_peer(const Tensor& src, const Tensor& dst, const Index& rank) const;
  Status shared_along(const Copy& copy) const;
  Status check_flag(const Tile& flag, bool written) const;
  Status check(const Signal& signal) const;
  Status check(const Wait& wait) const;
  Status check(const Map& map) const;
  Status check_whole(const Value& value) const;
  Status check(const Value& value, const Tensor& dst) const;
  Status check(const Mma& mma) const;
  Status check(const Of<Reduce, Scan> auto& node) const;
  Status check(const ConvertLayout& node) const;
  Status check(const Bitcast& node) const;
  Status unlike(std::string_view word, const Tensor& src, const Tensor& dst,
                const std::string& expected) const;
  Status meets(std::string_view statement) const;

  Status check(const ClusterReduce&) const { return meets("cluster_reduce"); }

  Status check(const ClusterSync&) const { return meets("cluster_sync"); }

  Status check(const Fill&) const { return ok(); }  // nothing beyond what it names

  Status check(const For& loop) const;
  Status check(const If& branch) const;
  Status opens(PipelineId id) const;

  Status check(const Produce& produce) const { return opens(produce.pipeline); }

  Status check(const Consume& consume) const;
  Status check(const Roles& roles) const;

  const Program& program_;
  const Location* location_ = nullptr;       // of the innermost statement
  std::map<std::string, const For*> loops_;  // in scope, by their variables

  // Produce and Consume around, outermost first
  std::vector<PipelineId> producing_;
  std::vector<PipelineId> consuming_;
  bool in_role_ = false;
  ptrdiff_t meeting_roles_ = 0;  // that have reductions over the cluster
  bool divergent_ = false;       // blocks of one cluster may disagree on whether they get here
};
}  // namespace warploom::tile
