#include "synth/sites.h"
#include <fmt/ranges.h>
#include "tile/shape.h"
namespace warploom::synth {
namespace {
using namespace tile;

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;  // clang 14 deduces no aggregates

void collect(const Program& program, const Body& body, Site here, std::vector<Site>& sites) {
  for (const Statement& statement : body) {
    Site site = here;
    site.statement = &statement;
    sites.push_back(site);
    std::visit(Overloaded{[&](const For& node) { collect(program, node.body, here, sites); },
                          [&](const If& node) { collect(program, node.body, here, sites); },
                          [&](const Produce& node) {
                            Site inner = here;
                            inner.producing = node.pipeline;
                            collect(program, node.body, inner, sites);
                          },
                          [&](const Consume& node) {
                            Site inner = here;
                            inner.consuming = node.pipeline;
                            collect(program, node.body, inner, sites);
                          },
                          [&](const Roles& node) {
                            int first = 0;
                            for (std::size_t i = 0; i < node.roles.size(); ++i) {
                              Site inner = here;
                              inner.role = static_cast<int>(i);
                              inner.first = first;
                              inner.threads = node.roles[i].warps * 32;
                              first += inner.threads;
                              collect(program, node.roles[i].body, inner, sites);
                            }
                          },
                          [](const auto&) {}},
               statement.node);
  }
}
}  // namespace
std::vector<Site> sites_of(const Program& program) {
  std::vector<Site> sites;
  Site top;
  top.threads = program.warps * 32;
  collect(program, program.body, top, sites);
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
  for (const Site& site : sites) {
    const auto named = tensors_of(*site.statement);
    if (std::find(named.begin(), named.end(), tensor) != named.end()) return site.statement;
  }
  return nullptr;
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

Bounds::Bounds(const Program& program) {
  static constexpr const char* kBlocks[] = {"block_x", "block_y", "block_z"};
  for (std::size_t d = 0; d < program.grid.size() && d < 3; ++d) variables_[kBlocks[d]] = {0, program.grid[d] - 1};
  std::int64_t cluster = 1;
  for (const auto extent : program.cluster) cluster *= extent;
  variables_["cluster_rank"] = {0, cluster - 1};
  collect(program.body);
}

void Bounds::collect(const Body& body) {
  for (const Statement& statement : body) {
    if (const auto* node = std::get_if<For>(&statement.node)) {
      const auto begin = range(node->begin), end = range(node->end);
      constexpr std::int64_t kFar = std::int64_t{1} << 40;
      const std::int64_t low = begin && end ? begin->first : -kFar, high = begin && end ? end->second - 1 : kFar;
      auto& reach = variables_.try_emplace(node->variable, low, low).first->second;  // of all loops of this name
      reach = {std::min(reach.first, low), std::max(reach.second, high)};
      collect(node->body);
    } else if (const auto* branch = std::get_if<If>(&statement.node)) {
      collect(branch->body);
    } else if (const auto* produce = std::get_if<Produce>(&statement.node)) {
      collect(produce->body);
    } else if (const auto* consume = std::get_if<Consume>(&statement.node)) {
      collect(consume->body);
    } else if (const auto* roles = std::get_if<Roles>(&statement.node)) {
      for (const Role& role : roles->roles) collect(role.body);
    }
  }
}

std::optional<std::pair<std::int64_t, std::int64_t>> Bounds::range(const Index& index) const {
  if (index.op() == IndexOp::constant) return std::pair{index.value(), index.value()};
  if (index.op() == IndexOp::variable) {
    const auto found = variables_.find(index.name());
    if (found == variables_.end()) return std::nullopt;
    return found->second;
  }
  const auto a = range(index.left()), b = range(index.right());
  if (!a || !b) return std::nullopt;
  switch (index.op()) {
    case IndexOp::add: return std::pair{a->first + b->first, a->second + b->second};
    case IndexOp::sub: return std::pair{a->first - b->second, a->second - b->first};
    case IndexOp::mul: {
      const auto corners = std::minmax({a->first * b->first, a->first * b->second, a->second * b->first, a->second * b->second});
      return std::pair{corners.first, corners.second};
    }
    case IndexOp::div: {
      if (b->first <= 0) return std::nullopt;
      const auto quotient = [](std::int64_t x, std::int64_t y) { return (Index(x) / y).value(); };  // floored
      const auto corners = std::minmax({quotient(a->first, b->first), quotient(a->first, b->second),
                                        quotient(a->second, b->first), quotient(a->second, b->second)});
      return std::pair{corners.first, corners.second};
    }
    case IndexOp::mod:
      if (b->first <= 0) return std::nullopt;
      return std::pair{std::int64_t{0}, a->first < 0 ? b->second - 1 : std::min(a->second, b->second - 1)};
    case IndexOp::min: return std::pair{std::min(a->first, b->first), std::min(a->second, b->second)};
    case IndexOp::max: return std::pair{std::max(a->first, b->first), std::max(a->second, b->second)};
    default: return std::nullopt;
  }
}

bool Bounds::may_exceed(const Program& program, const Tile& tile, int dim) const {
  const auto d = static_cast<std::size_t>(dim);
  if (tile.lookup >= 0 && tile.lookup_dim == dim) return true;
  const std::int64_t shape = program.tensor(tile.tensor).shape[d], extent = tile.reach(d);
  const auto reach = range(tile.offset[d]);
  if (reach && reach->first >= 0 && reach->second + extent <= shape) return false;
  // Interval arithmetic overestimates (i*4 + 4 with i < n/4 is exact, i*4 + j is not); whole tiles on whole multiples cannot
  // straddle the edge, but may lie outside altogether, so only a bound rules them out: round the largest offset down.
  if (reach && reach->first >= 0) {
    const std::int64_t divisor = tile.offset[d].known_divisor();
    if (divisor > 0 && reach->second / divisor * divisor + extent <= shape) return false;
  }
  return true;
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
}  // namespace warploom::synth
