// Clusters run one after another. The blocks of one, and all of a cooperative program, take turns:
// each runs until it waits for others.
#include "tile/interpret.h"
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <boost/context/fiber.hpp>
#include <boost/context/fiber_fcontext.hpp>
#include <boost/context/fixedsize_stack.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "tile/block_interpreter.h"
#include "tile/program.h"
#include "tile/verify.h"

namespace warploom::tile {
namespace {
// Of shared and register tensors, all blocks that run together.
constexpr int64_t kMostElements = int64_t{1} << 27;
constexpr size_t kStack = 1 << 20;

Status check_memory(const Program& program, const Buffers& buffers) {
  const int64_t together =
      program.cooperative ? element_count(program.grid) : cluster_size(program);
  int64_t elements =
      0;  // each tensor has at most 2^48 of them and there are fewer than 2^14 tensors
  for (const Tensor& tensor : program.tensors) {
    const std::string place = fmt::format("{}: tensor '{}'", place_of(program), tensor.name);
    const bool global = tensor.scope == Scope::global;
    const auto found = buffers.find(tensor.name);
    const int64_t needed =
        global ? bytes_of(tensor.dtype, span_of(tensor.shape, tensor.strides)) : 0;
    const int64_t given = found == buffers.end() ? 0 : std::ssize(found->second);
    if (given < needed) {
      const std::string message = "a global tensor has no buffer, or one that is too small";
      const std::string expected = fmt::format("{} bytes", needed);
      const std::string found_bytes = fmt::format("{} bytes", given);
      return fail({ErrorCode::kTileRuntime, message, place, expected, found_bytes,
                   "give a buffer for each global tensor by its name"});
    }
    if (!global) elements += element_count(tensor.shape);
    if (elements > kMostElements / together) {
      const std::string message = "the shared and register tensors are too large to interpret";
      const std::string expected =
          fmt::format("{} elements at most of blocks that run together", kMostElements);
      return fail({ErrorCode::kTileRuntime, message, place, expected, "", "use smaller tiles"});
    }
  }
  return ok();
}

Status run(std::list<std::deque<BlockInterpreter>>& clusters, Turns& turns) {
  using boost::context::fiber;
  if (clusters.size() == 1 && clusters.front().size() == 1) return clusters.front()[0].run();
  Status status = ok();
  fiber main;
  turns.others = [&] { main = std::move(main).resume(); };
  std::vector<fiber> running;
  for (std::deque<BlockInterpreter>& cluster : clusters)
    for (BlockInterpreter& block : cluster)
      running.emplace_back(std::allocator_arg, boost::context::fixedsize_stack(kStack),
                           [&](fiber&& from) {
                             main = std::move(from);
                             if (Status own = block.run(); !own) status = std::move(own);
                             return std::move(main);
                           });
  for (turns.stuck = false; status && !running.empty();) {
    const int64_t before = turns.events;
    for (auto one = running.begin(); status && one != running.end(); ++one)
      *one = std::move(*one).resume();
    const auto ended = std::erase_if(running, [](const fiber& one) { return !one; });
    turns.stuck = ended == 0 && turns.events == before;
  }
  return status;
}
}  // namespace

Status interpret(const Program& program, const Buffers& buffers) {
  WARPLOOM_CHECK(verify(program));
  WARPLOOM_CHECK(check_memory(program, buffers));
  for (const Tensor& tensor : program.tensors)
    if (tensor.zeroed) std::ranges::fill(buffers.at(tensor.name), std::byte{0});
  Turns turns;
  std::list<std::deque<BlockInterpreter>> running;  // by clusters
  for (int64_t z = 0; z < program.grid[2]; z += program.cluster[2])
    for (int64_t y = 0; y < program.grid[1]; y += program.cluster[1])
      for (int64_t x = 0; x < program.grid[0]; x += program.cluster[0]) {
        auto& cluster = running.emplace_back();
        const std::array<int64_t, 3> first = {x, y, z};
        for (int64_t i = 0; i < cluster_size(program); ++i)
          cluster.emplace_back(program, buffers, turns, cluster, first);
        if (program.cooperative) continue;
        WARPLOOM_CHECK(run(running, turns));
        running.clear();
      }
  return run(running, turns);
}
}  // namespace warploom::tile
