// Families: ways to compute a region, each with its schedule space.
//
// A Region is a set of operators computed together under a precision track; it is made whole, since
// it keeps what its graph computes. A Schedule is every choice for one region: the family's name
// and one integer for each field the family declares. A Family is one way to compute one region on
// one target, bound to what it found there: it says which values a field may take (its space),
// whether a combination is legal, and what tile programs that makes. Building is pure: the same
// (region, schedule, capabilities) always gives the same launch list.
//
//   for (const FamilyPtr& family : families_for(region, capabilities))
//     for (const Schedule& schedule : enumerate(family->space())) …
//       Result<LaunchList> list = build(region, schedule, capabilities);
#pragma once
#include "codegen/launch_list.h"
#include "graph/track.h"
#include "loopnest/loop_nest.h"
#include "target/capabilities.h"

namespace warploom::kernels {
using namespace loopnest;  // families are written in terms of loop nests throughout

class Region {
 public:
  graph::Graph graph;
  Track track = Track::fp32;

  Region() = default;
  Region(graph::Graph primitive, Track of);

  const std::vector<LoopNest>& nests() const {
    return *nests_;
  }  // what the graph computes, as the track allows, found once

 private:
  std::shared_ptr<const std::vector<LoopNest>> nests_ =
      std::make_shared<const std::vector<LoopNest>>();
};

struct Schedule {
  std::string family;
  std::map<std::string, int64_t> fields;
  std::string text()
      const;  // "matmul_wgmma block_m=128 block_n=256 stages=3 …": stable, the key of archives
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

nlohmann::json to_json(const Schedule& schedule);
Result<Schedule> schedule_from_json(const nlohmann::json& json);
int64_t field(const Schedule& schedule, const std::string& name, int64_t otherwise = 0);

// What fields must not be together. The first rule that is broken is the answer, kScheduleIllegal.
struct Constraint {
  bool broken;
  const char* expected;
  int64_t found;
};

Status check_constraints(const Schedule& schedule, std::initializer_list<Constraint> rules);

using Values = std::vector<int64_t>;

struct Field {
  std::string name;
  Values values;        // the legal ones for this region, most promising first
  std::string meaning;  // one sentence, units included
};

struct Space {
  std::string family;
  std::vector<Field> fields;
  int64_t size() const;  // number of combinations, legal or not; at most INT64_MAX
};

// How well a family suits what it covers: it keeps the target's fastest units busy, it is made for
// such regions, or it covers nearly everything.
enum class Specialization : uint8_t { fastest = 0, made = 1, general = 3 };

class Family {
 public:
  Family(std::string name, const target::Capabilities& capabilities, Specialization suit)
      : capabilities_(capabilities), name_(std::move(name)), suit_(suit) {}

  virtual ~Family() = default;

  const std::string& name() const { return name_; }

  Specialization suit() const { return suit_; }

  virtual Space space() const = 0;
  // The same of a schedule from elsewhere, a person or an older archive: every field of the space
  // must be there, and at least its least value.
  Status validate(const Schedule& schedule) const;
  // Of a schedule with every field: ok, or kScheduleIllegal / kResourceLimit with the fields that
  // clash.
  virtual Status legal(const Schedule& schedule) const = 0;

  // A relative guess of a legal schedule's time, smaller is better: where a search starts on a
  // target without a cost model.
  virtual double guess(const Schedule&) const { return 0; }

  // The tile programs in launch order, before synthesis; the buffers between them are workspaces.
  // Global tensors of a program carry short names of their own ("A", "C"); buffers[i] says which
  // buffer of the region (a tensor of the graph, a workspace) each name of programs[i] stands for.
  struct Programs {
    std::vector<tile::Program> programs;
    std::vector<std::map<std::string, std::string>> buffers;
    std::vector<BufferSpec> workspaces;
  };

  virtual Result<Programs> programs(const Schedule& schedule) const = 0;  // of a legal one

 protected:
  // ok, or kResourceLimit where a block's shared memory, or on a CPU a core's L2 cache, does not
  // hold so many bytes.
  Status fits(const Schedule& schedule, int64_t bytes) const;
  target::Capabilities capabilities_;

 private:
  std::string name_;
  Specialization suit_;
};

using FamilyPtr = std::shared_ptr<const Family>;

// Those that cover a region on a target, and the one of that name; null where it does not cover it.
std::vector<FamilyPtr> families_for(const Region& region, const target::Capabilities& capabilities);
FamilyPtr family_for(const Region& region, const std::string& name,
                     const target::Capabilities& capabilities);

// The families, one function each: bound to a region on a target, or null where it does not cover
// the region.
using target::Capabilities;
using Bind = FamilyPtr(const Region&, const Capabilities&);
Bind matmul_wgmma_family;  // sm_90a: copy engine, roles, warpgroup matrix instructions
Bind im2win_family;        // sm_90a, fp32 convolutions: windows of patches in shared memory
Bind matmul_mma_family;    // sm_80 and later: cp.async, mma.sync; convolutions, as the next
Bind matmul_simt_family;   // any GPU: fused multiply-adds, strict fp32
Bind rowwise_gpu_family;   // rows in registers, a ring, shared memory, or read again
Bind rowwise_cpu_family;   // rows in registers, in the L2 cache, or read again
Bind direct_family;  // any target: one level of loops, by tiles of the output; on a CPU sums of
                     // products, too, by blocks

// Programs → verify → synthesis → source: the whole way from a schedule to a launch list.
BufferSpec spec_of(const graph::Tensor& tensor);
Result<LaunchList> build(const Region& region, const Schedule& schedule,
                         const target::Capabilities& capabilities);
// The launch list's predicted_us alone, without the kernels' text.
Result<double> predicted_us(const Region& region, const Schedule& schedule,
                            const target::Capabilities& capabilities);

// What the region must do at the least: floating-point operations and bytes of inputs and outputs,
// each moved once.
struct Work {
  double flops = 0;
  double bytes = 0;
};

Work work_of(const Region& region);
}  // namespace warploom::kernels
