// Families: ways to compute a region, each with its space of configs.
//
// A Region is a set of operators computed together under a precision track; it is made whole, since
// it keeps what its graph computes. A KernelConfig is every choice for one region, a typed struct
// of its family (config/kernel_config.h). A Family is one way to compute one region on one target,
// bound to what it found there: it says which values a field may take (its space), which of its
// constraints a config fails, and what tile programs it makes. Building is pure: the same (region,
// config, capabilities) always gives the same launch list.
//
//   for (const FamilyPtr& family : families_for(region, capabilities))
//     SpaceWalk(*family).all([&](const KernelConfig& config) {
//       Result<LaunchList> list = build(region, config, capabilities);
//       …
//     });
#pragma once
#include <map>
#include <memory>
#include "codegen/launch_list.h"
#include "graph/track.h"
#include "kernels/config/configs.h"
#include "kernels/config/constraints.h"
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

using Values = std::vector<int64_t>;

// What a field may take for one region: numbers of enumerators for enums, 0 and 1 for flags.
struct Field {
  std::string name;
  Values values;        // most promising first
  std::string meaning;  // one sentence, units included
  size_t number = 0;    // of its row in the family's table
};

struct Space {
  std::string family;
  std::vector<Field> fields;  // others keep their defaults
  int64_t size() const;       // number of combinations, legal or not; at most INT64_MAX

  // A field more, by its row of the family's table.
  template <Config T> void offer(typename T::Field field, Values values);
};

// A field's row of a space, by its row of the family's table.
template <Config T> Field offered(typename T::Field field, Values values) {
  const auto number = static_cast<size_t>(field);
  const FieldInfo& row = T::type().fields[number];
  return {std::string(row.name), std::move(values), std::string(row.meaning), number};
}

template <Config T> void Space::offer(typename T::Field field, Values values) {
  fields.push_back(offered<T>(field, std::move(values)));
}

// The numbers of flags and enumerators.
template <class... T> Values choices(T... each) {
  return {static_cast<int64_t>(each)...};
}

// How well a family suits what it covers: it keeps the target's fastest units busy, it is made for
// such regions, or it covers nearly everything.
enum class Specialization : uint8_t { fastest = 0, made = 1, general = 3 };

class Family {
 public:
  Family(const ConfigType& type, const target::Capabilities& capabilities, Specialization suit)
      : capabilities_(capabilities), type_(&type), suit_(suit) {}

  virtual ~Family() = default;

  std::string name() const { return std::string(type_->family); }

  const ConfigType& type() const { return *type_; }  // of its configs

  Specialization suit() const { return suit_; }

  virtual Space space() const = 0;
  // Every constraint that a config of this family fails; none: it is legal.
  virtual FailedConstraints constraints(const KernelConfig& config) const = 0;
  // The same as a status: kScheduleIllegal or kResourceLimit with the first of them.
  Status legal(const KernelConfig& config) const;
  // The same of a config from elsewhere, a person or an older archive: every field of the space is
  // at least its least value there.
  Status validate(const KernelConfig& config) const;

  // What a config's kernels promise where inputs are infinite or NaN. Finite: operands split in two
  // parts, whose lower one is NaN of an infinity, and windows that overlap their neighbours by
  // elements which weights of 0 are to hide.
  virtual SpecialValues special_values(const KernelConfig&) const { return SpecialValues::exact; }

  // Which of synthesis's solutions a config asks for.
  virtual size_t layout_candidate(const KernelConfig&) const { return 0; }

  // A relative guess of a legal schedule's time, smaller is better: where a search starts on a
  // target without a cost model.
  virtual double guess(const KernelConfig&) const { return 0; }

  // The tile programs in launch order, before synthesis; the buffers between them are workspaces.
  // Global tensors of a program carry short names of their own ("A", "C"); buffers[i] says which
  // buffer of the region (a tensor of the graph, a workspace) each name of programs[i] stands for.
  struct Programs {
    std::vector<tile::Program> programs;
    std::vector<std::map<std::string, std::string>> buffers;
    std::vector<BufferSpec> workspaces;
  };

  virtual Result<Programs> programs(const KernelConfig& config) const = 0;  // of a legal one

 protected:
  target::Capabilities capabilities_;

 private:
  const ConfigType* type_;
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
Bind matmul_wgmma_family;  // sm_90a: TMA, warp roles, wgmma
Bind conv_wgmma_family;    // the same for convolutions, their operands in window order
Bind im2win_family;        // sm_90a, fp32 convolutions: windows of patches in shared memory
Bind matmul_mma_family;    // sm_80 and later: cp.async, mma.sync; convolutions, as the next
Bind matmul_simt_family;   // any GPU: fused multiply-adds, strict fp32
Bind matmul_cpu_family;    // CPUs: products in register tiles, operands packed where it pays
Bind conv_cpu_family;      // a CPU, convolutions: windows of patches in the L2 cache
Bind rowwise_gpu_family;   // rows in registers, a circular buffer, shared memory, or read again
Bind rowwise_cpu_family;   // rows in registers, in the L2 cache, or read again
Bind direct_family;  // any target: one level of loops, by tiles of the output; on a CPU sums of
                     // products, too, by blocks

// Programs → verify → synthesis → source: the whole way from a config to a launch list.
BufferSpec spec_of(const graph::Tensor& tensor);
Result<LaunchList> build(const Region& region, const KernelConfig& config,
                         const target::Capabilities& capabilities);
// The launch list's predicted_us alone, without the kernels' text.
Result<double> predicted_us(const Region& region, const KernelConfig& config,
                            const target::Capabilities& capabilities);

// What the region must do at the least: floating-point operations and bytes of inputs and outputs,
// each moved once.
struct Work {
  double flops = 0;
  double bytes = 0;
};

Work work_of(const Region& region);
}  // namespace warploom::kernels
