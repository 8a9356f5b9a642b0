// Joins: regions that store several tensors, made of groups (groups.h) once these are what they
// are.
//
// A group stores one tensor. Where another reads it and it is needed elsewhere too, or where two
// read the same tensor, the two are joined if that saves memory traffic:
//
//   h = x + r; n = LayerNorm(h); h is read later     one region, which stores h and n, and reads h
//                                                    from nowhere
//   the mean and the maximum of the rows of x        one region, which reads x once
//
// What is joined must not depend on itself: no way leads from one of the two through other regions
// to the other. Regions stand in an order in which they can run, so such a way lies between the
// two, and only what stands near is joined. What constants alone make is computed once before the
// calls, and joined to nothing else. Whether a family computes the union is for the caller to say.
// Within the room only.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>
#include "graph/graph.h"
#include "plan/groups.h"

namespace warploom::plan {
// Groups that become one region.
struct Part {
  Groups::Nodes roots;
  Groups::Nodes nodes;
  std::vector<graph::TensorId> stored;  // the largest first
  std::vector<graph::TensorId> read;
  bool multiplies = false;  // whether there is a product in it
};

class Joins {
 public:
  // Each group a part. `alone`: roots of those that stay so. `constants`: inputs of the graph that
  // hold the same in every call.
  Joins(const graph::Graph& graph, const Groups& groups, const Groups::Nodes& alone,
        const std::set<std::string>& constants);

  // Whether `both` is better than the two that it is made of, which it is told in their order.
  using Gain = std::function<bool(const Part& first, const Part& second, const Part& both)>;

  // Joins wherever it is, those first that share most bytes.
  void run(const Gain& gains);

  // In an order in which they can run.
  const std::vector<Part>& parts() const { return order_; }

 private:
  struct Candidate {
    size_t place = 0;    // of the second; the first is known
    int64_t shared = 0;  // bytes
  };

  bool join_at(size_t first, const Gain& gains);
  std::vector<Candidate> candidates(size_t first) const;
  std::set<size_t> next_users(graph::TensorId id, size_t first) const;
  std::vector<bool> reached_between(size_t first, size_t second) const;
  bool reads_any(const Part& part, size_t first, const std::vector<bool>& reached) const;
  std::optional<size_t> place_of(graph::TensorId id) const;
  Part joined(const Part& a, const Part& b) const;
  void replace(size_t first, size_t second, Part both);
  void number(size_t from, size_t end);
  bool is_prepared(const Part& part) const;
  int64_t bytes_of(const std::vector<graph::TensorId>& tensors) const;

  const graph::Graph& graph_;
  const Groups& groups_;
  Groups::Nodes alone_;
  std::set<graph::TensorId> prepared_;  // tensors that are the same in every call
  std::vector<Part> order_;
  std::vector<size_t> place_;            // in order_, by root
  std::vector<int> maker_;               // the root that stores a tensor, by tensor; or -1
  std::vector<std::vector<int>> users_;  // the roots of those that read a tensor, ascending
};
}  // namespace warploom::plan
