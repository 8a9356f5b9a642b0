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
}  // namespace warploom::synth
