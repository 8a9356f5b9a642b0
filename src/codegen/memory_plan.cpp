#include "codegen/memory_plan.h"
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "codegen/launch_list.h"
#include "codegen/prepare.h"

namespace warploom {
namespace {
// From the first to the last kernel that names a workspace, both included, in the order in which
// they run.
struct Life {
  size_t first = 0;
  size_t last = 0;
  size_t turn = 0;  // among all that are named, by their first mention
  bool named = false;
  bool cleared = false;  // filled with zeros before some kernel
  int64_t bytes = 0;     // a multiple of the alignment

  bool meets(const Life& other) const {
    return named && other.named && first <= other.last && other.first <= last;
  }
};

// The kernels' numbers as they run: those that prepare, then the others.
std::vector<size_t> run_order(const LaunchList& list) {
  auto order = list.prepare;
  std::ranges::copy(called_kernels(list), std::back_inserter(order));
  return order;
}

void mention(Life& life, size_t time, const Argument& argument, size_t& turn) {
  if (!life.named) {
    life.first = time;
    life.turn = turn++;
  }
  life.last = time;
  life.named = true;
  life.cleared |= argument.zeroed;
}

std::vector<Life> lives_of(const LaunchList& list) {
  std::vector<Life> lives(list.workspaces.size());
  std::map<std::string, size_t> number;
  for (size_t i = 0; i < lives.size(); ++i) {
    number[list.workspaces[i].name] = i;
    lives[i].bytes = round_up(list.workspaces[i].bytes(), kWorkspaceAlignment);
  }
  const auto order = run_order(list);
  size_t turn = 0;
  for (size_t time = 0; time < order.size(); ++time)
    for (const Argument& argument : list.kernels[order[time]].args) {
      const auto found = number.find(argument.buffer);
      if (found != number.end()) mention(lives[found->second], time, argument, turn);
    }
  // Made before the calls and named by them: wanted by every call, to its end.
  for (Life& life : lives)
    if (life.first < list.prepare.size() && life.last >= list.prepare.size())
      life.last = order.size();
  return lives;
}

// The workspaces' numbers, longest first; of equal ones that which lives first.
std::vector<size_t> by_size(const std::vector<Life>& lives) {
  std::vector<size_t> order(lives.size());
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](size_t i) { return std::pair(-lives[i].bytes, lives[i].first); };
  std::ranges::stable_sort(order, {}, key);
  return order;
}

// Workspaces on shelves: each, as its life begins, on the first shelf that is empty then. One that
// is cleared has a shelf of its own, above the others. Their numbers, shelf by shelf.
std::vector<size_t> by_shelf(const std::vector<Life>& lives) {
  constexpr size_t kTop = std::numeric_limits<size_t>::max();
  std::vector<size_t> order(lives.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](size_t i) { return lives[i].turn; });
  std::vector<size_t> last;  // on each shelf, the last kernel of what it holds
  std::vector<size_t> shelf_of(lives.size(), kTop);
  for (const size_t i : order) {
    if (lives[i].cleared || !lives[i].named) continue;
    const auto empty = std::ranges::find_if(last, [&](size_t k) { return k < lives[i].first; });
    shelf_of[i] = as_size(empty - last.begin());
    if (empty == last.end())
      last.push_back(lives[i].last);
    else
      *empty = lives[i].last;
  }
  std::ranges::stable_sort(order, {}, [&](size_t i) { return shelf_of[i]; });
  return order;
}

struct Layout {
  std::vector<int64_t> offsets;
  int64_t bytes = 0;
};

// The lowest offset at which workspace `i` meets none of those placed before it.
int64_t lowest_offset(const std::vector<Life>& lives, const std::vector<size_t>& placed,
                      const std::vector<int64_t>& offsets, size_t i) {
  std::vector<std::pair<int64_t, int64_t>> taken;  // begin and end
  for (const size_t other : placed)
    if (lives[other].meets(lives[i]))
      taken.emplace_back(offsets[other], offsets[other] + lives[other].bytes);
  std::ranges::sort(taken);
  int64_t offset = 0;
  for (const auto& [begin, end] : taken) {
    if (begin - offset >= lives[i].bytes) break;
    offset = std::max(offset, end);
  }
  return offset;
}

// Each workspace in turn as low as it can be.
Layout laid_out(const std::vector<Life>& lives, const std::vector<size_t>& order) {
  Layout layout{std::vector<int64_t>(lives.size()), 0};
  std::vector<size_t> placed;
  for (const size_t i : order) {
    layout.offsets[i] = lowest_offset(lives, placed, layout.offsets, i);
    const int64_t end = layout.offsets[i] + lives[i].bytes;
    layout.bytes = std::max(layout.bytes, end);
    placed.push_back(i);
  }
  return layout;
}
}  // namespace

int64_t MemoryPlan::offset_of(const std::string& name) const {
  return std::ranges::find(buffers, name, &PlacedBuffer::name)->offset;
}

MemoryPlan memory_plan(const LaunchList& list) {
  const auto lives = lives_of(list);
  // In the order of shelves no workspace lies higher than its shelf, so that the arena is no larger
  // than all shelves; in the order of sizes it is mostly smaller.
  const Layout shelves = laid_out(lives, by_shelf(lives));
  const Layout sizes = laid_out(lives, by_size(lives));
  const Layout& best = sizes.bytes <= shelves.bytes ? sizes : shelves;
  MemoryPlan plan{best.bytes, {}};
  for (size_t i = 0; i < lives.size(); ++i) {
    const BufferSpec& workspace = list.workspaces[i];
    plan.buffers.push_back({workspace.name, best.offsets[i], workspace.bytes()});
  }
  return plan;
}

std::vector<MemoryBlock> blocks_of(const MemoryPlan& plan) {
  auto sorted = plan.buffers;
  std::ranges::stable_sort(sorted, {}, [](const PlacedBuffer& buffer) {
    return std::pair(buffer.offset, buffer.bytes);
  });
  std::vector<MemoryBlock> blocks;
  int64_t end = 0;
  for (PlacedBuffer& buffer : sorted) {
    const bool shares = !blocks.empty() && buffer.offset < end;
    if (!shares) blocks.push_back({buffer.offset, 0, {}});
    MemoryBlock& block = blocks.back();
    block.bytes = std::max(block.bytes, buffer.offset + buffer.bytes - block.offset);
    block.buffers.push_back(std::move(buffer));
    end = block.offset + block.bytes;
  }
  return blocks;
}
}  // namespace warploom
