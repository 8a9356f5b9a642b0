#include "known.h"
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>
#include "base/dtype.h"
#include "base/value_op.h"
#include "tile/program.h"

namespace warploom::fuzz {
namespace {
using namespace tile;

constexpr double kTiny = 0x1p-149;  // of what was rounded
constexpr double kU = 0x1p-24;
constexpr double kFunction = 16;  // roundoffs of an elementary function
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Unbounded {};  // thrown: no useful bound exists

void demand(bool holds) {
  if (!holds) throw Unbounded{};
}

Known hull(const Known& a, const Known& b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high), std::max(a.error, b.error),
          std::min(a.unit, b.unit)};
}

Known constant_of(double value) {
  if (std::isinf(value)) return {value, value, 0, kTiny};
  double unit = 1;
  while (unit > kTiny && value != std::floor(value / unit) * unit)
    unit /= 2;
  return {value, value, 0, unit};
}

// The result of fp32 arithmetic: exact where 24 bits hold every multiple of the unit that may come
// out.
Known in_fp32(Known k, double roundings = 1) {
  demand(k.size() < 0x1p60);
  if (k.size() <= 0x1p24 * k.unit) return k;
  k.error += 2 * roundings * kU * k.size();
  k.unit = kTiny;
  return k;
}

double top_of_integer(Dtype dtype) {
  switch (dtype) {
    case Dtype::i64: return 0x1p40;
    case Dtype::i32: return 0x1p30;
    case Dtype::boolean: return 1;
    default: return 127;
  }
}

double top_of_float(Dtype dtype) {
  switch (dtype) {
    case Dtype::e4m3: return 448;
    case Dtype::e5m2: return 57344;
    case Dtype::f16: return 65504;
    default: return 0x1p60;
  }
}

// The spacing of a type's smallest numbers.
double least_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::e4m3: return 0x1p-9;
    case Dtype::e5m2: return 0x1p-16;
    case Dtype::f16: return 0x1p-24;
    default: return kTiny;
  }
}

Known stored(Dtype dtype, Known k) {
  if (std::isinf(k.size())) {
    demand(is_float(dtype) && bits_of(dtype) > 8);
    return k;
  }
  if (!is_float(dtype)) {
    demand(k.size() <= top_of_integer(dtype) &&
           (k.low >= 0 || (dtype != Dtype::u8 && dtype != Dtype::boolean)));
    k.low = std::trunc(k.low);
    k.high = std::trunc(k.high);
    k.unit = std::max(1.0, k.unit);
    if (k.error > 0) k.error += 1;
    return k;
  }
  const double spacing = 2 * unit_roundoff(dtype);
  const double size = k.size();
  if (k.error > 0) k.error += spacing * size + least_of(dtype);
  if (dtype != Dtype::f32 && dtype != Dtype::f64 && size / k.unit > 1 / unit_roundoff(dtype)) {
    k.low -= spacing * size;
    k.high += spacing * size;
  }
  demand(k.size() + k.error <= top_of_float(dtype));
  return k;
}

Known product(const Known& a, const Known& b) {
  const double corners[] = {a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high};
  demand(std::isfinite(a.size()) && std::isfinite(b.size()));
  return {*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4),
          a.error * b.size() + b.error * a.size() + a.error * b.error,
          std::max(kTiny, a.unit * b.unit)};
}

Known added(const Known& a, const Known& b) {
  demand(std::isfinite(a.size()) && std::isfinite(b.size()));
  return {a.low + b.low, a.high + b.high, a.error + b.error, std::min(a.unit, b.unit)};
}

// A function that rises or falls throughout, with the largest slope on the interval.
Known function(const Known& a, double at_low, double at_high, double slope) {
  Known k{std::min(at_low, at_high), std::max(at_low, at_high), slope * a.error, kTiny};
  demand(std::isfinite(k.size()) && k.size() < 0x1p20 && std::isfinite(slope));
  k.error += kFunction * kU * std::max(k.size(), 1.0);
  return k;
}

Known applied(ValueOp op, const std::array<Known, 3>& x) {
  const Known& a = x[0];
  const Known& b = x[1];
  const Known& c = x[2];
  // what a target may hand in
  const double low = a.low - a.error;
  const double high = a.high + a.error;
  switch (op) {
    case ValueOp::add: return in_fp32(added(a, b));
    case ValueOp::sub: return in_fp32(added(a, {-b.high, -b.low, b.error, b.unit}));
    case ValueOp::mul: return in_fp32(product(a, b));
    case ValueOp::fma: return in_fp32(added(product(a, b), c), 2);
    case ValueOp::neg: return {-a.high, -a.low, a.error, a.unit};
    case ValueOp::max:
      return {std::max(a.low, b.low), std::max(a.high, b.high), std::max(a.error, b.error),
              std::min(a.unit, b.unit)};
    case ValueOp::min:
      return {std::min(a.low, b.low), std::min(a.high, b.high), std::max(a.error, b.error),
              std::min(a.unit, b.unit)};
    case ValueOp::abs: return {std::max({0.0, a.low, -a.high}), a.size(), a.error, a.unit};
    case ValueOp::relu: return {std::max(0.0, a.low), std::max(0.0, a.high), a.error, a.unit};
    case ValueOp::where: demand(a.error == 0); return hull(b, c);
    case ValueOp::less:
    case ValueOp::equal: demand(a.error == 0 && b.error == 0); return Known{0, 1, 0, 1};
    case ValueOp::floor:
      demand(a.error == 0 && a.size() < 0x1p30);
      return Known{std::floor(a.low), std::floor(a.high), 0, std::max(1.0, a.unit)};
    case ValueOp::round_tf32: demand(a.size() < 0x1p30); return stored(Dtype::tf32, a);
    case ValueOp::binade:
    case ValueOp::inverse_binade:
    case ValueOp::bit_and:
    case ValueOp::fmod:  // jumps: no program of the generator has it
      demand(false);
      return a;
    case ValueOp::div: {
      double least = 0;  // of the divisor's size
      if (b.low > 0)
        least = b.low - b.error;
      else if (b.high < 0)
        least = -b.high - b.error;
      demand(least > 0.01);
      const double size = a.size() / least;
      return in_fp32({-size, size, a.error / least + b.error * size / least, kTiny});
    }
    case ValueOp::fast_exp:
    case ValueOp::exp: return function(a, std::exp(a.low), std::exp(a.high), std::exp(high));
    case ValueOp::atan: return function(a, std::atan(a.low), std::atan(a.high), 1);
    case ValueOp::exp2: return function(a, std::exp2(a.low), std::exp2(a.high), std::exp2(high));
    case ValueOp::log:
      demand(low > 0.01);
      return function(a, std::log(a.low), std::log(a.high), 1 / low);
    case ValueOp::sqrt:
      demand(low > 0.01 || (a.low >= 0 && a.error == 0));
      return function(a, std::sqrt(a.low), std::sqrt(a.high),
                      a.error == 0 ? 0 : 0.5 / std::sqrt(low));
    case ValueOp::rsqrt:
      demand(low > 0.01);
      return function(a, 1 / std::sqrt(a.low), 1 / std::sqrt(a.high), 0.5 * std::pow(low, -1.5));
    case ValueOp::reciprocal:
      demand(low > 0.01);
      return function(a, 1 / a.low, 1 / a.high, 1 / (low * low));
    case ValueOp::tanh: return function(a, std::tanh(a.low), std::tanh(a.high), 1);
    case ValueOp::sin:
    case ValueOp::cos: return function(a, -1, 1, 1);
    case ValueOp::erf: return function(a, std::erf(a.low), std::erf(a.high), 1.2);
    case ValueOp::sigmoid:
      return function(a, 1 / (1 + std::exp(-a.low)), 1 / (1 + std::exp(-a.high)), 0.25);
  }
  throw Unbounded{};
}

Known reduced(ReduceOp op, const Known& k, double count) {
  if (op != ReduceOp::sum) return k;
  demand(std::isfinite(k.size()));
  return in_fp32(
      {count * std::min(k.low, 0.0), count * std::max(k.high, 0.0), count * k.error, k.unit},
      count);
}

// Follows one block after another. Cluster reductions see the other blocks' values through `met_`,
// which the round before filled.
class Follower {
 public:
  Follower(const Program& program, const std::map<std::string, Known>& inputs)
      : program_(program), inputs_(inputs) {}

  std::map<std::string, Known> run() {
    for (int round = 0; round < 6; ++round) {
      const size_t before = met_.size();
      const auto known = met_;
      outputs_ = inputs_;
      for (int64_t z = 0; z < program_.grid[2]; ++z)
        for (int64_t y = 0; y < program_.grid[1]; ++y)
          for (int64_t x = 0; x < program_.grid[0]; ++x)
            block(x, y, z);
      const bool stable =
          before == met_.size() &&
          std::equal(met_.begin(), met_.end(), known.begin(), [](const auto& a, const auto& b) {
            return a.second.low == b.second.low && a.second.high == b.second.high &&
                   a.second.error == b.second.error;
          });
      if (stable) return outputs_;
    }
    throw Unbounded{};
  }

 private:
  void block(int64_t x, int64_t y, int64_t z) {
    const auto& c = program_.cluster;
    variables_ = {{"block_x", x},
                  {"block_y", y},
                  {"block_z", z},
                  {"cluster_rank", x % c[0] + c[0] * (y % c[1] + c[1] * (z % c[2]))}};
    tensors_.clear();
    body(program_.body);
  }

  void body(const Body& statements) {
    for (const Statement& s : statements)
      std::visit([this](const auto& node) { visit(node); }, s.node);
  }

  Known read(TensorId id) const {
    const Tensor& t = program_.tensor(id);
    if (t.scope == Scope::global) {
      const auto found = outputs_.find(t.name);
      demand(found != outputs_.end());
      return found->second;
    }
    const auto found = tensors_.find(id);
    demand(found != tensors_.end());
    return found->second;
  }

  void write(TensorId id, Known k, bool whole) {
    const Tensor& t = program_.tensor(id);
    k = stored(t.dtype, k);
    if (t.scope == Scope::global) {
      const auto [place, fresh] = outputs_.try_emplace(t.name, k);
      if (!fresh) place->second = hull(place->second, k);
      return;
    }
    const auto [place, fresh] = tensors_.try_emplace(id, k);
    if (!fresh) place->second = whole && t.pipeline < 0 ? k : hull(place->second, k);
  }

  bool inside(const Tile& tile) const {
    const Tensor& t = program_.tensor(tile.tensor);
    for (size_t d = 0; d < tile.extent.size(); ++d) {
      const int64_t at = tile.offset[d].evaluate(variables_);
      if (at < 0 || at + tile.extent[d] > t.shape[d]) return false;
    }
    return true;
  }

  void visit(const Copy& s) {
    Known k = read(s.src.tensor);
    if (!inside(s.src)) k = hull(k, constant_of(s.fill));
    write(s.dst.tensor, k, s.dst.extent == program_.tensor(s.dst.tensor).shape);
  }

  void visit(const Fill& s) { write(s.dst, constant_of(s.value), true); }

  void visit(const Map& s) { write(s.dst, value(s.value, program_.tensor(s.dst).shape), true); }

  void visit(const Reduce& s) {
    const auto length = program_.tensor(s.src).shape[static_cast<size_t>(s.axis)];
    write(s.dst, reduced(s.op, read(s.src), static_cast<double>(length)), true);
  }

  void visit(const Scan& s) {
    const auto length = program_.tensor(s.src).shape[static_cast<size_t>(s.axis)];
    write(s.dst, reduced(s.op, read(s.src), static_cast<double>(length)), true);
  }

  void visit(const ConvertLayout& s) { write(s.dst, read(s.src), true); }

  template <class Other> void visit(const Other&) { throw Unbounded{}; }

  void visit(const ClusterReduce& s) {
    const Known own = read(s.dst);
    const auto [met, fresh] = met_.try_emplace(&s, own);
    if (!fresh) met->second = hull(met->second, own);
    write(s.dst, reduced(s.op, met->second, static_cast<double>(cluster_size(program_))), true);
  }

  void visit(const Mma& s) {
    const Known a = read(s.a.tensor);
    const Known b = read(s.b.tensor);
    const Known acc = read(s.acc);
    const auto extent = matrix_extent(s.a.extent);
    const auto k = static_cast<double>(extent[s.transpose_a ? 0 : 1]);
    Known p = product(a, b);
    p.low = k * std::min(0.0, p.low);
    p.high = k * std::max(0.0, p.high);
    p.error *= k;
    const Known sum = added(acc, p);
    write(s.acc, program_.tensor(s.acc).dtype == Dtype::i32 ? sum : in_fp32(sum, k), true);
  }

  void visit(const For& s) {
    const int64_t end = s.end.evaluate(variables_);
    const int64_t step = s.step.evaluate(variables_);
    for (int64_t i = s.begin.evaluate(variables_); i < end; i += step) {
      variables_[s.variable] = i;
      body(s.body);
    }
  }

  void visit(const If& s) {
    if (s.left.evaluate(variables_) < s.right.evaluate(variables_)) body(s.body);
  }

  void visit(const Produce& s) { body(s.body); }

  void visit(const Consume& s) { body(s.body); }

  void visit(const Roles& s) {
    for (const Role& role : s.roles)
      body(role.body);
  }

  Known value(const Value& v, const std::vector<int64_t>& shape) const {
    if (v.kind == Value::Kind::constant)
      return constant_of(static_cast<double>(static_cast<float>(v.constant)));
    if (v.kind == Value::Kind::tensor) return in_fp32(read(v.tensor), 0);
    if (v.kind == Value::Kind::coordinate) {
      const auto first = static_cast<double>(v.shift.evaluate(variables_));
      return {first, first + static_cast<double>(shape[static_cast<size_t>(v.axis)] - 1), 0, 1};
    }
    std::array<Known, 3> x;
    for (size_t i = 0; i < v.operands.size(); ++i)
      x[i] = value(v.operands[i], shape);
    return applied(v.op, x);
  }

  const Program& program_;
  const std::map<std::string, Known>& inputs_;
  std::map<std::string, int64_t> variables_;
  std::map<TensorId, Known> tensors_;
  std::map<std::string, Known> outputs_;
  std::map<const ClusterReduce*, Known> met_;
};
}  // namespace

double Known::size() const {
  return std::max(std::fabs(low), std::fabs(high));
}

std::optional<std::map<std::string, Known>> known_of(const Program& program,
                                                     const std::map<std::string, Known>& inputs) {
  try {
    auto known = Follower(program, inputs).run();
    for (const auto& [name, k] : known)
      demand(k.error == 0 || k.error <= 0.01 * k.size());
    return known;
  } catch (const Unbounded&) {
    return std::nullopt;
  }
}
}  // namespace warploom::fuzz
