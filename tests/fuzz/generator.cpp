#include "generator.h"
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>
#include "base/dtype.h"
#include "base/random.h"
#include "fuzz/known.h"
#include "fuzz/program.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::fuzz {
using namespace tile;

// Now and then a name that emitted source would like for itself.
std::string Generator::fresh(const std::string& stem) {
  if (!odd_names_.empty() && chance(0.15)) {
    const size_t at = random_.below(odd_names_.size());
    const std::string name = odd_names_[at];
    odd_names_.erase(odd_names_.begin() + static_cast<ptrdiff_t>(at));
    return name;
  }
  return stem + std::to_string(++fresh_);
}

Index Generator::at_same(const Variable& v) {
  const Index i = v.scale == 1 ? v.index : v.index / v.scale;
  switch (between(0, 12)) {
    case 0: return min(i, v.count + 3);
    case 1: return max(i, 0) + (i - v.count) / (2 * v.count) + 1;  // the quotient is floored: -1
    case 2: return (i - 3 * v.count) % v.count;
    case 3: return i * 6 / 6;
    case 4: return v.count - 1 - (v.count - 1 - i);
    default: return i;
  }
}

Dtype Generator::any_dtype() {
  if (!on_gpu()) return pick({Dtype::f32, Dtype::f32, Dtype::f32, Dtype::bf16, Dtype::f16});
  const double u = random_.uniform();
  if (u < 0.5) return Dtype::f32;
  if (u < 0.8) return pick({Dtype::bf16, Dtype::f16});
  if (target_ == "sm_80" && chance(0.9)) return Dtype::f32;
  if (u < 0.97 || data_ == Data::real) return pick({Dtype::e4m3, Dtype::e5m2, Dtype::tf32});
  return pick({Dtype::i32, Dtype::i8, Dtype::u8, Dtype::i64, Dtype::f64, Dtype::boolean});
}

void Generator::make_grid(bool clusters) {
  const Shape grid = {pick({1, 2, 2, 3, 4}), pick({1, 1, 2}), pick({1, 1, 1, 2})};
  int64_t x = grid[0];
  if (clusters && target_ == "sm_90a" && chance(0.5)) {
    cluster_ = pick({2, 2, 4});
    x = cluster_ * pick({1, 2});
    b_.cluster(cluster_);
  }
  b_.grid(x, grid[1], grid[2]);
  Variable first{block(0), x, 1};
  if (cluster_ > 1 && chance(0.5))
    first.index = block(0) / cluster_ * cluster_ + tile::cluster_rank();
  for (const Variable& v : {first, Variable{block(1), grid[1], 1}, Variable{block(2), grid[2], 1}})
    if (v.count > 1 || chance(0.1)) vars_.push_back(v);
}

void Generator::loop(int64_t turns, const std::function<void(const Variable&)>& body) {
  Variable v{0, turns, 1};
  const std::string name = fresh("j");
  const auto made = [&](const Index& i) {
    v.index = i;
    vars_.push_back(v);
    body(v);
    vars_.pop_back();
  };
  const int64_t scale = pick({1, 1, 1, 4, 16});
  if (scale > 1) {
    v.scale = scale;
    b_.for_(name, 0, turns * scale, scale, made, chance(0.1));
  } else {
    const int64_t begin = chance(0.2) ? between(1, 3) : 0;
    b_.for_(name, begin, begin + turns, 1, [&](const Index& i) { made(i - begin); }, chance(0.1));
  }
}

double Generator::fill_for(Dtype dtype) {
  if (chance(0.6)) return 0;
  if (dtype == Dtype::boolean) return 1;
  if (dtype == Dtype::u8) return pick({1.0, 3.0});
  if (data_ == Data::raw && is_float(dtype) && bits_of(dtype) > 8 && chance(0.5))
    return pick({-HUGE_VAL, HUGE_VAL});
  return is_float(dtype) ? pick({1.0, -2.0, 0.5, 7.0}) : pick({1.0, -2.0, 7.0});
}

// Tiles on a grid, of which some lie outside.
Tile Generator::packed_box(const Shape& extent, Dtype dtype) {
  std::vector<Index> at(extent.size(), 0);
  Shape tiles(extent.size(), 1);
  for (const Variable& v : vars_) {
    const size_t d = packs_.below(extent.size());
    at[d] = at[d] * v.count + at_same(v);
    tiles[d] *= v.count;
  }
  Shape shape;
  for (size_t d = 0; d < extent.size(); ++d) {
    if (packs_.below(6) == 0) at[d] = at[d] + (static_cast<int64_t>(packs_.below(4)) - 1);
    if (packs_.below(3) == 0) tiles[d] += static_cast<int64_t>(packs_.below(4)) - 1;
    shape.push_back(std::max<int64_t>(tiles[d], 1) * extent[d]);
    at[d] = at[d] * extent[d];
  }
  return b_.tile(b_.prepacked(b_.global(fresh("X"), dtype, shape)), at, extent);
}

// The tensor of a box, and the box with the dimensions in front.
struct Generator::BoxParts {
  int64_t vector = 1;  // elements of 16 bytes
  Shape shape;
  Shape full;
  Shape steps;
  std::vector<Index> offset;

  void add(int64_t size, int64_t extent, const Index& at) {
    shape.push_back(size);
    full.push_back(extent);
    offset.push_back(at);
  }
};

// A dimension of the box that `moved` move.
void Generator::add_dimension(BoxParts& parts, int64_t extent, const std::vector<Variable>& moved,
                              bool contiguous, const BoxOptions& o) {
  const int64_t vector = parts.vector;
  int64_t count = 1;
  int64_t scale = 1;
  Index at = 0;
  for (const Variable& v : moved) {
    if (moved.size() == 1 && v.scale > 1 && extent % v.scale == 0) {
      at = v.index * (extent / v.scale);
      scale = 0;
    } else
      at = at * v.count + at_same(v);
    count *= v.count;
  }
  if (scale) at = at * extent;
  int64_t size = count * extent;
  const int64_t step = o.aligned && contiguous ? vector : 1;
  if (chance(0.15)) {
    const int64_t shift = step * pick({1, 2, 4, 8});
    at = at + shift;
    size += shift;
  } else if (chance(0.06)) {
    const int64_t shift = step * pick({1, 2, 4});
    at = at - shift;
  }
  if (chance(0.3))
    size -= std::min(size - 1, pick({1, 2, 3, 8, 16}) * step);
  else if (chance(0.2))
    size += pick({1, 3, 8, 64});
  if (o.aligned) size = (size + vector - 1) / vector * vector;
  const int64_t every = !o.aligned && !o.dense && chance(0.06) ? pick({2, 3, 5}) : 1;
  if (every > 1) {
    at = at * every + pick({0, 1, -1});
    size = size * every - pick({0, 1, 2});
  }
  parts.steps.resize(parts.full.size(), 1);
  parts.steps.push_back(every);
  parts.add(std::max<int64_t>(1, size), extent, at);
}

// An order of the dimensions, and room between rows.
Shape Generator::box_strides(const Shape& shape, bool swapped, size_t rank, const BoxOptions& o,
                             int64_t vector) {
  std::vector<size_t> order(shape.size());
  std::iota(order.rbegin(), order.rend(), 0);  // fastest first
  const size_t n = order.size();
  if (swapped) std::swap(order[0], order[1]);
  if (n > 2 && !o.dense && chance(0.1)) std::swap(order[n - 1], order[n - 2]);
  Shape strides(n, 0);
  int64_t next = 1;
  for (size_t i = 0; i < n; ++i) {
    strides[order[i]] = next;
    next *= shape[order[i]];
    if (o.aligned) next = (next + vector - 1) / vector * vector;
    if (!o.dense && chance(0.12)) next += o.aligned ? vector : pick<int64_t>({1, 3, 8, 16});
  }
  if (!o.output && !o.aligned && !o.dense && rank >= 2 && chance(0.04)) strides[n - 2] = 0;
  return strides;
}

Tile Generator::box(const Shape& extent, Dtype dtype, const BoxOptions& o) {
  if (o.packs && packs_.below(4) == 0) return packed_box(extent, dtype);
  const int64_t vector = std::max<int64_t>(1, 16 / bytes_of(dtype));
  const size_t rank = extent.size();
  const bool swapped = rank >= 2 && (o.transposed || (!o.aligned && !o.dense && chance(0.15)));
  const size_t contiguous = rank - (swapped ? 2 : 1);
  // Which variables move which dimension; those that are left become dimensions of their own, in
  // front.
  std::vector<std::vector<Variable>> moved(rank);
  std::vector<Variable> outer;
  for (const Variable& v : vars_) {
    const double u = random_.uniform();
    if (u < 0.7)
      moved[random_.below(rank)].push_back(v);
    else if (o.output || u < 0.85)
      outer.push_back(v);
  }
  BoxParts parts;
  parts.vector = vector;
  for (const Variable& v : outer)
    parts.add(v.count, 1, at_same(v));
  if (!o.aligned && chance(0.1)) parts.add(1, 1, 0);
  for (size_t d = 0; d < rank; ++d)
    add_dimension(parts, extent[d], moved[d], d == contiguous, o);
  const Shape strides = box_strides(parts.shape, swapped, rank, o, vector);
  const std::string name = fresh(o.output ? "Y" : "X");
  const TensorId id = o.output ? b_.output(name, dtype, parts.shape, strides)
                               : b_.global(name, dtype, parts.shape, strides);
  return b_.stepped(b_.tile(id, parts.offset, parts.full), parts.steps);
}

namespace {
struct Kind {
  const char* name;
  void (Generator::*make)();
  int weight;
};

constexpr Kind kKinds[] = {{"elementwise", &Generator::elementwise, 30},
                           {"moves", &Generator::moves, 20},
                           {"matmul", &Generator::matmul, 40},
                           {"ring", &Generator::ring, 10}};

// What the CPU's code generation has no counterpart for.
bool fits_cpu(const Program& program) {
  bool fits = program.pipelines.empty() && cluster_size(program) == 1;
  for (const Tensor& t : program.tensors)
    fits &= t.dtype == Dtype::f32 || t.dtype == Dtype::bf16 || t.dtype == Dtype::f16;
  for (const Statement& s : program.body)
    fits &= !std::holds_alternative<Roles>(s.node);
  return fits;
}

Known known_input(Data data, Dtype dtype) {
  if (data == Data::raw) return {-HUGE_VAL, HUGE_VAL, 0, 0x1p-149};
  if (dtype == Dtype::boolean || dtype == Dtype::u8)
    return {0, dtype == Dtype::u8 ? 3.0 : 1.0, 0, 1};
  if (data == Data::small || !is_float(dtype)) return {-3, 3, 0, 1};
  return {-2, 2, 0, 0x1p-149};
}
}  // namespace

std::optional<Case> with_program(const Case& like, Program program) {
  std::map<std::string, Known> inputs;
  for (const Tensor& t : program.tensors)
    if (t.scope == Scope::global && !t.writable) inputs[t.name] = known_input(like.data, t.dtype);
  auto known = known_of(program, inputs);
  if (!known) return std::nullopt;
  return Case{like.seed, like.kind, like.targets, std::move(program), like.data, std::move(*known)};
}

Case make_case(uint64_t seed) {
  // What the analysis refuses is made anew from the next stream of the same seed.
  for (int attempt = 0;; ++attempt) {
    Random random(seed * 1000 + static_cast<uint64_t>(attempt), "case");
    Case c{.seed = seed};
    uint64_t at = random.below(100);
    const Kind* kind = kKinds;
    while (at >= static_cast<uint64_t>(kind->weight))
      at -= static_cast<uint64_t>((kind++)->weight);
    c.kind = kind->name;
    const bool moves = c.kind == "moves";
    if (moves)
      c.data = random.below(4) ? Data::raw : Data::small;
    else
      c.data = random.below(3) ? Data::small : Data::real;
    static constexpr const char* kGpus[] = {"sm_80", "sm_89", "sm_90a", "sm_90a"};
    const std::string gpu = c.kind == "ring" ? "sm_90a" : kGpus[random.below(4)];
    const std::string target = c.kind != "ring" && random.below(10) < 3 ? "cpu" : gpu;
    Generator generator(seed * 1000 + static_cast<uint64_t>(attempt), target, c.data);
    (generator.*kind->make)();
    c.program = generator.finish();
    c.program.name = "fuzz_" + std::to_string(seed);
    c.targets = {target};
    const bool fits = fits_cpu(c.program);
    const bool product = c.kind == "matmul";
    if (fits && !product)
      c.targets = {gpu, "cpu"};
    else if (target == "cpu" && !fits)
      continue;
    if (auto made = with_program(c, c.program)) return std::move(*made);
  }
}
}  // namespace warploom::fuzz
