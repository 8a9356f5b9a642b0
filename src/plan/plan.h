// Plan: how a graph is computed on a target: its regions, and a kernel config for each.
//
// A plan is a value: it can be copied, compared, printed and hashed. It says nothing of times, of
// sources or of the machine; with the families of kernels/ it gives the launch list (build_plan),
// which memory_plan (codegen/memory_plan.h) lays out. Equal plans have equal text and equal hash,
// which is the plan's identity. What weights hold is no part of a plan: kernels load them.
//
//   plan of net for x86-64-v4, track fp32
//   0 MatMul+Add+Gelu: x, w0, b0 -> t3
//     matmul_cpu block_m=…
//   1 Reshape: t3 -> y, in place
#pragma once
#include <set>
#include <string>
#include <vector>
#include "base/error.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "graph/rewrite.h"
#include "graph/track.h"
#include "kernels/family.h"
#include "plan/fusion.h"
#include "target/capabilities.h"

namespace warploom::plan {
struct Plan {
  graph::Graph graph;  // as it is cut into regions
  Track track = Track::fp32;
  std::string target;               // "sm_90a", "x86-64-v4"
  std::set<std::string> constants;  // inputs of the graph that hold the same in every call
  Partition partition;
  std::vector<kernels::KernelConfig> configs;  // one a region; of an alias without a family
  // How the graph came to be of what was given, beyond what is always done (graph/rewrite.h).
  std::vector<graph::Rewrite> rewrites = {};

  std::string text() const;  // for people
  std::string hash() const;  // 32 hexadecimal digits: of the graph and the text

  friend bool operator==(const Plan& a, const Plan& b) { return a.hash() == b.hash(); }
};

// The plan's launch list; fails where a family refuses its config.
Result<LaunchList> build_plan(const Plan& plan, const target::Capabilities& capabilities);
}  // namespace warploom::plan
