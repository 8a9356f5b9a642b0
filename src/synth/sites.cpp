#include "synth/sites.h"
#include <fmt/ranges.h>
namespace warploom::synth {
namespace {
using namespace tile;

void collect(const Body& body, const Site& here, std::vector<Site>& sites) {
  for (const Statement& statement : body) {
    Site inner = here;
    inner.statement = &statement;
    sites.push_back(inner);
    if (const auto* node = std::get_if<Produce>(&statement.node)) inner.producing = node->pipeline;
    const auto* roles = std::get_if<Roles>(&statement.node);
    if (roles) inner.threads = 0;
    for_bodies(statement, [&](const Body& inside) {
      if (roles) {
        inner.first += inner.threads;
        inner.threads = roles->roles[static_cast<std::size_t>(++inner.role)].warps * 32;
      }
      collect(inside, inner, sites);
    });
  }
}
}  // namespace
std::vector<Site> sites_of(const Program& program) {
  std::vector<Site> sites;
  Site top;
  top.threads = program.warps * 32;
  collect(program.body, top, sites);
  return sites;
}

bool is_between_roles(const std::vector<Site>& sites, PipelineId pipeline) {
  int producer = -2, consumer = -2;
  for (const Site& site : sites) {
    if (const auto* node = std::get_if<Produce>(&site.statement->node); node && node->pipeline == pipeline) producer = site.role;
    if (const auto* node = std::get_if<Consume>(&site.statement->node); node && node->pipeline == pipeline) consumer = site.role;
  }
  return producer != consumer;
}

const Statement* first_use(const std::vector<Site>& sites, TensorId tensor) {
  for (const Site& site : sites)
    for (const TensorUse& use : uses_of(*site.statement))
      if (use.tensor == tensor) return site.statement;
  return nullptr;
}

std::string place_of_use(const Program& program, TensorId tensor) {
  const Statement* use = first_use(sites_of(program), tensor);
  return use ? place_of(*use) : fmt::format("program '{}'", program.name);
}

std::string text_of(const std::vector<std::int64_t>& extent) { return fmt::format("[{}]", fmt::join(extent, ", ")); }

std::optional<int> met_by(const Tile& mine, const Tile& other, std::optional<int> dim) {
  const auto met = meetings(mine.extent, other.extent);
  for (std::size_t i = 0; met && dim && i < met->size(); ++i)
    if ((*met)[i].b.back() == *dim) return (*met)[i].a.back();
  return std::nullopt;
}

std::optional<int> contiguous_dim(const Tensor& tensor) {
  std::optional<int> found;
  for (std::size_t d = 0; d < tensor.shape.size(); ++d)
    if (tensor.strides[d] == 1 && (tensor.shape[d] > 1 || !found)) found = static_cast<int>(d);
  return found;
}

int vector_limit(const Program& program, const Bounds& bounds, const Tile& tile, int max_bytes) {
  const Tensor& tensor = program.tensor(tile.tensor);
  const auto contiguous = contiguous_dim(tensor);
  if (!contiguous) return 1;
  auto fits = [&](std::int64_t width) {
    for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
      const bool along = static_cast<int>(d) == *contiguous;
      if (along && tile.lookup >= 0 && tile.lookup_dim == *contiguous) return false;
      if (along && (tile.step_along(d) != 1 || tile.extent[d] % width || tile.offset[d].known_divisor() % width)) return false;
      if (along && bounds.may_exceed(program, tile, static_cast<int>(d)) && tensor.shape[d] % width) return false;
      if (!along && tensor.shape[d] > 1 && tensor.strides[d] % width) return false;
    }
    return true;
  };
  int width = std::max(1, max_bytes * 8 / bits_of(tensor.dtype));
  while (width > 1 && !fits(width)) width /= 2;
  return width;
}

// Ranges of index expressions.
namespace {
// Far beyond any address and still safe to add and multiply by small numbers.
constexpr std::int64_t kFar = std::int64_t{1} << 60;

std::int64_t clip(double value) {
  return value >= static_cast<double>(kFar)    ? kFar
         : value <= -static_cast<double>(kFar) ? -kFar
                                               : static_cast<std::int64_t>(value);
}
std::int64_t product(std::int64_t a, std::int64_t b) {
  const double far = static_cast<double>(a) * static_cast<double>(b);
  return std::abs(far) < 4e18 ? a * b : clip(far);
}
std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }
}  // namespace
IndexRanges::IndexRanges(const Program& program) {
  constexpr const char* kBlocks[] = {"block_x", "block_y", "block_z"};
  for (std::size_t i = 0; i < 3; ++i) {
    const std::int64_t count = i < program.grid.size() ? program.grid[i] : 1;
    loops_[kBlocks[i]] = {{0, count - 1}, 0, 1};
  }
  loops_["cluster_rank"] = {{0, cluster_size(program) - 1}, 0, 1};
}

void IndexRanges::enter(const For& loop) {
  const Range begin = of(loop.begin), end = of(loop.end);
  std::int64_t last = end.high - 1;
  if (const auto step = loop.step.constant(); step && *step > 0 && loop.begin.constant() && loop.end.constant())
    last = begin.low + floor_div(last - begin.low, *step) * *step;
  loops_[loop.variable] = {{begin.low, std::max(begin.low, last)}, loop.begin, loop.step};
}

Range IndexRanges::of(const Index& index) const {
  if (index.op() == IndexOp::constant) return {index.value(), index.value()};
  if (index.op() == IndexOp::variable) {
    const auto found = loops_.find(index.name());
    return found == loops_.end() ? Range{-kFar, kFar} : found->second.range;
  }
  const Range a = of(index.left()), b = of(index.right());
  switch (index.op()) {
    case IndexOp::add: return {std::max(-kFar, a.low + b.low), std::min(kFar, a.high + b.high)};
    case IndexOp::sub: return {std::max(-kFar, a.low - b.high), std::min(kFar, a.high - b.low)};
    case IndexOp::mul: {
      const std::int64_t all[] = {product(a.low, b.low), product(a.low, b.high), product(a.high, b.low), product(a.high, b.high)};
      return {*std::min_element(all, all + 4), *std::max_element(all, all + 4)};
    }
    case IndexOp::div: {
      if (b.low <= 0) return {-kFar, kFar};
      const std::int64_t all[] = {floor_div(a.low, b.low), floor_div(a.low, b.high), floor_div(a.high, b.low),
                                  floor_div(a.high, b.high)};
      return {*std::min_element(all, all + 4), *std::max_element(all, all + 4)};
    }
    case IndexOp::mod:
      if (b.low <= 0) return {-kFar, kFar};
      if (a.low >= 0 && a.high < b.low) return a;
      return {0, a.low < 0 ? b.high - 1 : std::min(a.high, b.high - 1)};
    case IndexOp::min: return {std::min(a.low, b.low), std::min(a.high, b.high)};
    default: return {std::max(a.low, b.low), std::max(a.high, b.high)};
  }
}

bool IndexRanges::divisible(const Index& index, std::int64_t by) const {
  if (by == 1) return true;
  switch (index.op()) {
    case IndexOp::constant: return index.value() % by == 0;
    case IndexOp::variable: {
      const auto found = loops_.find(index.name());
      if (found == loops_.end()) return false;
      if (found->second.range.low == found->second.range.high) return found->second.range.low % by == 0;
      return divisible(found->second.begin, by) && divisible(found->second.step, by);
    }
    case IndexOp::mul: return divisible(index.left(), by) || divisible(index.right(), by);
    case IndexOp::add:
    case IndexOp::sub:
    case IndexOp::min:
    case IndexOp::max: return divisible(index.left(), by) && divisible(index.right(), by);
    default: return false;
  }
}

Bounds::Bounds(const Program& program) : IndexRanges(program) {
  for (const Site& site : sites_of(program))
    if (const auto* loop = std::get_if<For>(&site.statement->node)) {
      const auto known = loops_.find(loop->variable);
      const Range before = known == loops_.end() ? Range{kFar, -kFar} : known->second.range;
      enter(*loop);
      Range& all = loops_[loop->variable].range;
      all = {std::min(all.low, before.low), std::max(all.high, before.high)};
    }
}

bool Bounds::may_exceed(const Program& program, const Tile& tile, int dim) const {
  const auto d = static_cast<std::size_t>(dim);
  if (tile.lookup >= 0 && tile.lookup_dim == dim) return true;
  const std::int64_t shape = program.tensor(tile.tensor).shape[d], extent = tile.reach(d);
  const Range reach = of(tile.offset[d]);
  if (reach.low >= 0 && reach.high + extent <= shape) return false;
  // Interval arithmetic overestimates (i*4 + 4 with i < n/4 is exact, i*4 + j is not); whole tiles on whole multiples cannot
  // straddle the edge, but may lie outside altogether, so only a bound rules them out: round the largest offset down.
  if (reach.low >= 0) {
    const std::int64_t divisor = tile.offset[d].known_divisor();
    if (divisor > 0 && reach.high / divisor * divisor + extent <= shape) return false;
  }
  return true;
}
}  // namespace warploom::synth
