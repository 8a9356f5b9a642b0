// Programs that several tests use, and buffers to run them on.
#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>
#include "base/error.h"
#include "base/random.h"
#include "tile/build.h"
#include "tile/interpret.h"

namespace warploom::tile {
// Named arrays of elements for interpret(): filled at random, read back as doubles.
class Arrays {
 public:
  explicit Arrays(const Program& program, uint64_t seed = 1) {
    Random random(seed, "arrays");
    for (const Tensor& tensor : program.tensors) {
      if (tensor.scope != Scope::global) continue;
      int64_t last = 0;
      for (size_t i = 0; i < tensor.shape.size(); ++i)
        last += (tensor.shape[i] - 1) * tensor.strides[i];
      Array& array = arrays_[tensor.name];
      array.dtype = tensor.dtype;
      array.bytes.resize(static_cast<size_t>(bytes_of(tensor.dtype, last + 1)));
      for (int64_t i = 0; i <= last; ++i)
        set(tensor.name, static_cast<size_t>(i), random.normal());
    }
  }

  Buffers buffers() {
    Buffers result;
    for (auto& [name, array] : arrays_)
      result[name] = array.bytes;
    return result;
  }

  double get(const std::string& name, size_t i) const {
    const Array& array = arrays_.at(name);
    return load_as_double(array.dtype, array.bytes.data(), i);
  }

  void set(const std::string& name, size_t i, double value) {
    store_from_double(arrays_.at(name).dtype, arrays_.at(name).bytes.data(), i, value);
  }

 private:
  struct Array {
    Dtype dtype = Dtype::f32;
    std::vector<std::byte> bytes;
  };

  std::map<std::string, Array> arrays_;
};

inline Program rowwise_scale(int64_t rows, int64_t columns) {
  Builder b("rowwise_scale");
  b.grid(rows);
  const auto x = b.global("X", Dtype::f32, {rows, columns});
  const auto y = b.output("Y", Dtype::f32, {rows, columns});
  const auto r = b.reg("row", Dtype::f32, {1, columns});
  b.copy(b.tile(x, {block(0), 0}, {1, columns}), b.all(r));
  b.map(r, b.value(r) * constant(2.0));
  b.copy(b.all(r), b.tile(y, {block(0), 0}, {1, columns}));
  return b.finish();
}

struct MatmulShape {
  // the problem
  int64_t m = 64;
  int64_t n = 48;
  int64_t k = 80;
  // a block's tile
  int64_t bm = 32;
  int64_t bn = 16;
  int64_t bk = 16;
  int stages = 3;
  Dtype dtype = Dtype::bf16;
  bool transpose_b = false;  // B stored [N, K]
};

inline Index tiles(int64_t extent, int64_t tile) {
  return (extent + tile - 1) / tile;
}

// What the three matmul programs share: the tensors, and the tiles of A and B that a step of k
// loads.
struct MatmulParts {
  TensorId a;
  TensorId b;
  TensorId c;
  TensorId stage_a;
  TensorId stage_b;
  std::vector<int64_t> b_extent;
};

inline MatmulParts matmul_parts(Builder& b, const MatmulShape& s) {
  b.grid(tiles(s.m, s.bm).value(), tiles(s.n, s.bn).value());
  MatmulParts p;
  p.a = b.global("A", s.dtype, {s.m, s.k});
  p.b = b.global("B", s.dtype, s.transpose_b ? std::vector{s.n, s.k} : std::vector{s.k, s.n});
  p.c = b.output("C", Dtype::f32, {s.m, s.n});
  p.b_extent = s.transpose_b ? std::vector{s.bn, s.bk} : std::vector{s.bk, s.bn};
  p.stage_a = b.shared("a", s.dtype, {s.bm, s.bk});
  p.stage_b = b.shared("b", s.dtype, p.b_extent);
  return p;
}

inline void load_step(Builder& b, const MatmulShape& s, const MatmulParts& p, const Index& k) {
  const Index row = block(0) * s.bm;
  const Index column = block(1) * s.bn;
  b.copy(b.tile(p.a, {row, k * s.bk}, {s.bm, s.bk}), b.all(p.stage_a));
  b.copy(b.tile(p.b,
                s.transpose_b ? std::vector<Index>{column, k * s.bk}
                              : std::vector<Index>{k * s.bk, column},
                p.b_extent),
         b.all(p.stage_b));
}

// One half of the rows: 0 is the upper.
inline void consume_half(Builder& b, const MatmulShape& s, const MatmulParts& p, PipelineId ab,
                         TensorId acc, int half) {
  const Index row = half * s.bm / 2;
  b.fill(acc, 0);
  b.for_("k", 0, tiles(s.k, s.bk), 1, [&](const Index&) {
    b.consume(ab, 1, [&] {
      b.mma(acc, b.tile(p.stage_a, {row, 0}, {s.bm / 2, s.bk}), b.all(p.stage_b), false,
            s.transpose_b);
    });
  });
  b.copy(b.all(acc), b.tile(p.c, {block(0) * s.bm + row, block(1) * s.bn}, {s.bm / 2, s.bn}));
}

// Each step of k into the stage that comes next.
inline void produce_steps(Builder& b, const MatmulShape& s, const MatmulParts& p, PipelineId ab) {
  b.for_("k", 0, tiles(s.k, s.bk), 1,
         [&](const Index& k) { b.produce(ab, [&] { load_step(b, s, p, k); }); });
}

// A producer role and two consumer roles that share each stage: one multiplies the upper half of
// the rows, one the lower.
inline Program matmul_with_roles(const MatmulShape& s) {
  Builder b("gemm");
  const MatmulParts p = matmul_parts(b, s);
  const TensorId acc[] = {b.reg("acc0", Dtype::f32, {s.bm / 2, s.bn}),
                          b.reg("acc1", Dtype::f32, {s.bm / 2, s.bn})};
  const PipelineId ab = b.pipeline("ab", s.stages, {p.stage_a, p.stage_b});
  b.roles([&] {
    b.role("producer", 4, 40, [&] { produce_steps(b, s, p, ab); });
    for (int half = 0; half < 2; ++half)
      b.role(half ? "lower" : "upper", 4, 232, [&] { consume_half(b, s, p, ab, acc[half], half); });
  });
  return b.finish();
}

// One thread of control: stages - 1 stages are produced ahead, then each step consumes one and
// produces one.
inline Program matmul_pipelined(const MatmulShape& s) {
  Builder b("gemm_pipelined");
  const MatmulParts p = matmul_parts(b, s);
  const auto acc = b.reg("acc", Dtype::f32, {s.bm, s.bn});
  const PipelineId ab = b.pipeline("ab", s.stages, {p.stage_a, p.stage_b});
  const Index steps = tiles(s.k, s.bk);
  const Index ahead = s.stages - 1;
  const auto produce = [&](const Index& k) { b.produce(ab, [&] { load_step(b, s, p, k); }); };
  b.fill(acc, 0);
  b.for_("p", 0, min(ahead, steps), 1, produce, true);
  b.for_("k", 0, steps, 1, [&](const Index& k) {
    b.consume(ab, 0, [&] { b.mma(acc, b.all(p.stage_a), b.all(p.stage_b), false, s.transpose_b); });
    b.if_less(k + ahead, steps, [&] { produce(k + ahead); });
  });
  b.copy(b.all(acc), b.tile(p.c, {block(0) * s.bm, block(1) * s.bn}, {s.bm, s.bn}));
  return b.finish();
}

// The largest difference from a product in fp64, relative to the sum of the products' magnitudes.
inline double matmul_error(const MatmulShape& s, const Arrays& arrays) {
  double worst = 0;
  for (int64_t m = 0; m < s.m; ++m)
    for (int64_t n = 0; n < s.n; ++n) {
      double sum = 0;
      double size = 0;
      for (int64_t k = 0; k < s.k; ++k) {
        const double product =
            arrays.get("A", static_cast<size_t>(m * s.k + k)) *
            arrays.get("B", static_cast<size_t>(s.transpose_b ? n * s.k + k : k * s.n + n));
        sum += product;
        size += std::fabs(product);
      }
      const double got = arrays.get("C", static_cast<size_t>(m * s.n + n));
      if (!(std::fabs(got - sum) <= size)) return 1;  // NaN too
      worst = std::fmax(worst, std::fabs(got - sum) / size);
    }
  return worst;
}

// Softmax of rows that are read in pieces: the running maximum and sum are rescaled as pieces come.
inline Program online_softmax(int64_t rows, int64_t columns, int64_t piece) {
  Builder b("online_softmax");
  b.grid(rows);
  const auto x = b.global("X", Dtype::f32, {rows, columns});
  const auto y = b.output("Y", Dtype::f32, {rows, columns});
  const auto v = b.reg("v", Dtype::f32, {1, piece});
  const auto e = b.reg("e", Dtype::f32, {1, piece});
  const auto top = b.reg("top", Dtype::f32, {1, 1});
  const auto sum = b.reg("sum", Dtype::f32, {1, 1});
  const auto piece_top = b.reg("piece_top", Dtype::f32, {1, 1});
  const auto piece_sum = b.reg("piece_sum", Dtype::f32, {1, 1});
  const auto exp = [](Value value) { return apply(ValueOp::exp, {std::move(value)}); };
  b.fill(top, -INFINITY);
  b.fill(sum, 0);
  b.for_("j", 0, tiles(columns, piece), 1, [&](const Index& j) {
    b.copy(b.tile(x, {block(0), j * piece}, {1, piece}), b.all(v), -INFINITY);
    b.reduce(piece_top, v, 1, ReduceOp::max);
    b.map(piece_top, apply(ValueOp::max, {b.value(piece_top), b.value(top)}));
    b.map(e, exp(b.value(v) - b.value(piece_top)));
    b.reduce(piece_sum, e, 1, ReduceOp::sum);
    b.map(sum, b.value(sum) * exp(b.value(top) - b.value(piece_top)) + b.value(piece_sum));
    b.map(top, b.value(piece_top));
  });
  b.for_("j", 0, tiles(columns, piece), 1, [&](const Index& j) {
    b.copy(b.tile(x, {block(0), j * piece}, {1, piece}), b.all(v), 0, true);
    b.map(e, exp(b.value(v) - b.value(top)) / b.value(sum));
    b.copy(b.all(e), b.tile(y, {block(0), j * piece}, {1, piece}), 0, true);
  });
  return b.finish();
}

// Softmax of rows that the blocks of a cluster share, each with its part of the columns.
inline Program cluster_softmax(int64_t rows, int64_t columns, int64_t blocks) {
  Builder b("cluster_softmax");
  b.grid(blocks, rows).cluster(blocks);
  const int64_t part = columns / blocks;
  const auto x = b.global("X", Dtype::f32, {rows, columns});
  const auto y = b.output("Y", Dtype::f32, {rows, columns});
  const auto v = b.reg("v", Dtype::f32, {1, part});
  const auto top = b.reg("top", Dtype::f32, {1, 1});
  const auto sum = b.reg("sum", Dtype::f32, {1, 1});
  b.copy(b.tile(x, {block(1), cluster_rank() * part}, {1, part}), b.all(v));
  b.reduce(top, v, 1, ReduceOp::max);
  b.cluster_reduce(top, ReduceOp::max);
  b.map(v, apply(ValueOp::exp, {b.value(v) - b.value(top)}));
  b.reduce(sum, v, 1, ReduceOp::sum);
  b.cluster_reduce(sum, ReduceOp::sum);
  b.map(v, b.value(v) / b.value(sum));
  b.copy(b.all(v), b.tile(y, {block(1), cluster_rank() * part}, {1, part}));
  return b.finish();
}

// The largest difference of Y from the softmax of X's rows in fp64.
inline double softmax_error(int64_t rows, int64_t columns, const Arrays& arrays) {
  double worst = 0;
  for (int64_t i = 0; i < rows; ++i) {
    const auto at = [&](int64_t j) { return static_cast<size_t>(i * columns + j); };
    double top = -INFINITY;
    double sum = 0;
    for (int64_t j = 0; j < columns; ++j)
      top = std::fmax(top, arrays.get("X", at(j)));
    for (int64_t j = 0; j < columns; ++j)
      sum += std::exp(arrays.get("X", at(j)) - top);
    for (int64_t j = 0; j < columns; ++j) {
      const double difference =
          std::fabs(arrays.get("Y", at(j)) - std::exp(arrays.get("X", at(j)) - top) / sum);
      if (!(difference <= 1)) return 1;  // NaN too
      worst = std::fmax(worst, difference);
    }
  }
  return worst;
}

// Whether interpreting it fails at a line, in such words.
inline void expect_undefined(const Program& program, int line, const std::string& word) {
  Arrays arrays(program);
  const Status status = interpret(program, arrays.buffers());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kTileRuntime) << describe(status.error());
  EXPECT_TRUE(status.error().place.ends_with(fmt::format(":{}", line))) << status.error().place;
  EXPECT_NE(status.error().message.find(word), std::string::npos) << status.error().message;
}
}  // namespace warploom::tile
