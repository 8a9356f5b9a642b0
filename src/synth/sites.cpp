#include "synth/sites.h"
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::synth {
namespace {
void collect(const Body& body, const Site& here, std::vector<Site>& sites) {
  for (const Statement& statement : body) {
    Site inner = here;
    inner.statement = &statement;
    sites.push_back(inner);
    if (const auto* node = statement.as<Produce>()) inner.producing = node->pipeline;
    const auto* roles = statement.as<Roles>();
    if (roles) inner.threads = 0;
    for_bodies(statement, [&](const Body& inside) {
      if (roles) {
        inner.first += inner.threads;
        inner.threads = roles->roles[++inner.role].warps * 32;
      }
      collect(inside, inner, sites);
    });
  }
}

// Far beyond any address and still safe to add and multiply by small numbers.
constexpr int64_t kFar = int64_t{1} << 60;

// Of an operation that takes its extremes where both sides take theirs.
int64_t extreme(IndexOp op, int64_t a, int64_t b) {
  int64_t product = 0;
  if (op == IndexOp::mul && __builtin_mul_overflow(a, b, &product))
    return (a < 0) == (b < 0) ? kFar : -kFar;
  return std::clamp(compute(op, a, b), -kFar, kFar);
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
  int producer = -2;
  int consumer = -2;
  for (const Site& site : sites) {
    if (const auto* node = site.statement->as<Produce>(); node && node->pipeline == pipeline)
      producer = site.role;
    if (const auto* node = site.statement->as<Consume>(); node && node->pipeline == pipeline)
      consumer = site.role;
  }
  return producer != consumer;
}

Sides sides_of(const Program& program, const Copy& copy) {
  Sides sides;
  for (const Tile* tile : {&copy.dst, &copy.src}) {
    const Scope scope = program.tensor(tile->tensor).scope;
    if (scope == Scope::global) sides.global = tile;
    if (scope == Scope::shared) sides.shared = tile;
    if (scope == Scope::reg) sides.registers = tile;
  }
  sides.load = sides.global ? sides.global == &copy.src : sides.shared == &copy.src;
  return sides;
}

const Statement* first_use(const std::vector<Site>& sites, TensorId tensor) {
  for (const Site& site : sites)
    for (const TensorUse& use : uses_of(*site.statement))
      if (use.tensor == tensor) return site.statement;
  return nullptr;
}

tl::unexpected<Error> too_much(const Program& program, const std::map<TensorId, int64_t>& bytes,
                               const std::string& message, int64_t most, int64_t all,
                               const std::string& remedy) {
  std::string found;
  std::pair<TensorId, int64_t> largest = {-1, 0};
  for (const auto& [id, taken] : bytes) {
    const Tensor& tensor = program.tensor(id);
    std::string stages;
    if (tensor.pipeline >= 0)
      stages = fmt::format("{} x ", program.pipeline(tensor.pipeline).stages);
    if (!found.empty()) found += ", ";
    found += fmt::format("'{}' {}{} {}", tensor.name, stages, text_of(tensor.shape), taken);
    if (taken > largest.second) largest = {id, taken};
  }
  const Statement* use = first_use(sites_of(program), largest.first);
  Error error{ErrorCode::kResourceLimit, message};
  error.place = use ? place_of(*use) : place_of(program);
  error.expected = fmt::format("at most {} bytes", most);
  error.found = fmt::format("{} bytes: {}", all, found);
  error.remedy = remedy;
  return fail(error);
}

std::optional<size_t> met_by(const Tile& mine, const Tile& other, std::optional<size_t> dim) {
  const auto met = meetings(mine.extent, other.extent);
  for (size_t i = 0; met && dim && i < met->size(); ++i)
    if ((*met)[i].b.back() == *dim) return (*met)[i].a.back();
  return std::nullopt;
}

std::optional<size_t> contiguous_dim(const Tensor& tensor) {
  std::optional<size_t> found;
  for (size_t d = 0; d < tensor.shape.size(); ++d)
    if (tensor.strides[d] == 1 && (tensor.shape[d] > 1 || !found)) found = d;
  return found;
}

int vector_limit(const Program& program, const Bounds& bounds, const Tile& tile) {
  const Tensor& tensor = program.tensor(tile.tensor);
  const auto contiguous = contiguous_dim(tensor);
  const size_t c = contiguous.value_or(0);
  if (!contiguous || tile.step_along(c) != 1 || tile.gathered_along(c)) return 1;
  int64_t common = std::gcd(tile.extent[c], tile.offset[c].known_divisor());
  if (bounds.may_exceed(program, tile, c)) common = std::gcd(common, tensor.shape[c]);
  for (size_t d = 0; d < tensor.shape.size(); ++d)
    if (d != c && tensor.shape[d] > 1) common = std::gcd(common, tensor.strides[d]);
  return as_int(std::gcd(common, 128 / bits_of(tensor.dtype)));
}

// Ranges of index expressions.
IndexRanges::IndexRanges(const Program& program) {
  for (int d = 0; d < 3; ++d) {
    const Range blocks{0, program.grid[d] - 1};
    loops_[block(d).name()] = {blocks, 0, 1};
  }
  loops_["cluster_rank"] = {{0, cluster_size(program) - 1}, 0, 1};
}

void IndexRanges::enter(const For& loop) {
  const Range begin = of(loop.begin);
  const Range end = of(loop.end);
  int64_t last = end.high - 1;
  if (const auto step = loop.step.constant();
      step && *step > 0 && loop.begin.constant() && loop.end.constant())
    last -= (last - begin.low) % *step;
  const Range range{begin.low, std::max(begin.low, last)};
  loops_[loop.variable] = {range, loop.begin, loop.step};
}

Range IndexRanges::of(const Index& index) const {
  if (index.op() == IndexOp::constant) return {index.value(), index.value()};
  if (index.op() == IndexOp::variable) {
    const auto found = loops_.find(index.name());
    return found == loops_.end() ? Range{-kFar, kFar} : found->second.range;
  }
  const Range a = of(index.left());
  const Range b = of(index.right());
  const bool modulo = index.op() == IndexOp::mod;
  if ((modulo || index.op() == IndexOp::div) && b.low <= 0) return {-kFar, kFar};
  if (modulo && a.low >= 0 && a.high < b.low) return a;
  const int64_t largest_rest = b.high - 1;
  if (modulo && a.low < 0) return {0, largest_rest};
  if (modulo) return {0, std::min(a.high, largest_rest)};
  Range out{kFar, -kFar};
  for (const int64_t left : {a.low, a.high})
    for (const int64_t right : {b.low, b.high}) {
      const int64_t value = extreme(index.op(), left, right);
      out = {std::min(out.low, value), std::max(out.high, value)};
    }
  return out;
}

bool IndexRanges::divisible(const Index& index, int64_t by) const {
  return index.is_multiple(by, [&](const std::string& name) {
    const auto found = loops_.find(name);
    if (found == loops_.end()) return false;
    const auto& [range, begin, step] = found->second;
    if (range.low == range.high) return range.low % by == 0;
    return divisible(begin, by) && divisible(step, by);
  });
}

Bounds::Bounds(const Program& program) : IndexRanges(program) {
  for (const Site& site : sites_of(program))
    if (const auto* loop = site.statement->as<For>()) {
      const auto known = loops_.find(loop->variable);
      const Range before = known == loops_.end() ? Range{kFar, -kFar} : known->second.range;
      enter(*loop);
      Range& all = loops_[loop->variable].range;
      all.low = std::min(all.low, before.low);
      all.high = std::max(all.high, before.high);
    }
}

bool Bounds::may_exceed(const Program& program, const Tile& tile, size_t dim) const {
  if (tile.gathered_along(dim)) return true;
  const Range reach = of(tile.offset[dim]);
  // Interval arithmetic overestimates (i*4 + 4 with i < n/4 is exact, i*4 + j is not); whole tiles
  // on whole multiples cannot straddle the edge, but may lie outside altogether, so only a bound
  // rules them out: round the largest offset down.
  const int64_t divisor = tile.offset[dim].known_divisor();
  const int64_t last_start = reach.high / divisor * divisor;
  const int64_t size = program.tensor(tile.tensor).shape[dim];
  return reach.low < 0 || last_start + tile.reach(dim) > size;
}
}  // namespace warploom::synth
