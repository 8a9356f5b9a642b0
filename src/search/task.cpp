#include "search/task.h"
#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include "base/casts.h"
#include "base/dtype.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "kernels/family.h"
#include "search/coder/written.h"
#include "target/capabilities.h"
#include "verify/setup.h"

namespace warploom::search {
namespace {
// Of what candidates may lay out anew before the time begins: how few bytes of it a call reads is
// theirs to choose.
double constant_bytes(const graph::Graph& graph, const std::set<std::string>& constants) {
  double bytes = 0;
  for (const graph::Tensor& tensor : graph.tensors)
    if (tensor.constant || constants.contains(tensor.name))
      bytes += as_double(graph::byte_count(tensor));
  return bytes;
}

// The track by whose fastest unit a region's time is bounded: products of whole numbers may be
// those of 8 bits, whatever the track is that floats have.
Track bounding_track(const kernels::Region& region) {
  const graph::Graph& graph = region.graph;
  const bool any = std::ranges::any_of(graph.nodes, [&](const graph::Node& node) {
    return graph::multiplies(class_of(node.op)) && is_integer(graph.tensor(node.inputs[0]).dtype);
  });
  return any ? Track::fp8 : region.track;
}
}  // namespace

Task make_task(const kernels::Region& region, const target::Capabilities& capabilities,
               uint64_t seed, const std::set<std::string>& constants, double least_flops) {
  const auto work = kernels::work_of(region);
  const double flops = std::min(work.flops, least_flops);
  const double least_bytes = std::max(0.0, work.bytes - constant_bytes(region.graph, constants));
  const Track track = bounding_track(region);
  const auto bound = verify::bound_of(capabilities, track, flops, work.bytes);
  Task task;
  task.setup.graph = region.graph;
  task.setup.track = region.track;
  task.setup.engine = capabilities.gpu ? Engine::cuda : Engine::cpu;
  task.setup.floor_us = verify::floor_us(capabilities, track, flops, least_bytes);
  task.setup.flops = work.flops > 0 ? work.flops : work.bytes;
  task.setup.seed = seed;
  task.setup.constants = constants;
  task.bound = bound;
  return task;
}

void take_texts(Task& task) {
  task.texts = std::make_shared<WrittenTexts>(task.space.region, task.space.capabilities);
  task.space = with_texts(std::move(task.space), task.texts);
}
}  // namespace warploom::search
