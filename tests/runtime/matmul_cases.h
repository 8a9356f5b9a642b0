// A matmul through a reference against plain FP64 sums, for either engine.
#pragma once
#include <cmath>
#include "base/value_op.h"
#include "fixtures.h"
#include "runtime/vendor.h"

namespace warploom::runtime {
inline double activate(Activation activation, double x) {
  switch (activation) {
    case Activation::none: return x;
    case Activation::relu: return x > 0 ? x : 0;
    case Activation::gelu_erf: return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    case Activation::gelu_tanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::tanh: return std::tanh(x);
    case Activation::sigmoid: return 1 / (1 + std::exp(-x));
    case Activation::silu: return x / (1 + std::exp(-x));
  }
  return x;
}

inline double flops_of(const VendorProblem& p) {
  if (p.kind == VendorKind::softmax) return 5.0 * static_cast<double>(p.m * p.n);
  return 2.0 * static_cast<double>(p.batch * p.m * p.n) * static_cast<double>(p.k);
}

// Ours, whatever libraries are there.
inline Result<Runnable> plain_kernel(Executor& device, const VendorProblem& p) {
  const LaunchList list = plain_reference(device.info(), p);
  WARPLOOM_TRY(const Binary binary, compile(list, {.most_spills = kAnySpills}));
  return device.load(list, binary);
}

// The relative Frobenius error of `reference` on random operands, or what failed.
inline Result<double> matmul_error(Executor& device, const VendorProblem& p,
                                   const Runnable& reference) {
  const std::int64_t bias_elements = p.bias == BiasKind::none         ? 0
                                     : p.bias == BiasKind::per_column ? p.n
                                     : p.bias == BiasKind::per_row    ? p.m
                                                                      : p.batch * p.m * p.n;
  const auto a = random_tensor(p.in, (p.batched_a ? p.batch : 1) * p.m * p.k, 1);
  const auto b = random_tensor(p.in, (p.batched_b ? p.batch : 1) * p.k * p.n, 2);
  const auto bias = random_tensor(p.bias_dtype, bias_elements, 3);
  std::vector<char> c(static_cast<std::size_t>(p.batch * p.m * p.n * bytes_of(p.out)));
  Bindings buffers;
  WARPLOOM_TRY(buffers["A"], on_device(device, a));
  WARPLOOM_TRY(buffers["B"], on_device(device, b));
  WARPLOOM_TRY(buffers["bias"], on_device(device, bias));
  WARPLOOM_TRY(buffers["C"], on_device(device, c));
  WARPLOOM_CHECK(device.fill(buffers["C"], 0xffedffedu));
  WARPLOOM_CHECK(run(device, reference, buffers));
  WARPLOOM_CHECK(device.download(buffers["C"], c.data(), static_cast<std::int64_t>(c.size())));

  auto at = [](Dtype dtype, const std::vector<char>& data, std::int64_t i) {
    return load_as_double(dtype, data.data(), static_cast<std::size_t>(i));
  };
  double error = 0, norm = 0;
  for (std::int64_t q = 0; q < p.batch; ++q)
    for (std::int64_t i = 0; i < p.m; ++i)
      for (std::int64_t j = 0; j < p.n; ++j) {
        double sum = 0;
        for (std::int64_t k = 0; k < p.k; ++k) {
          const std::int64_t in_a = p.transpose_a ? k * p.m + i : i * p.k + k,
                             in_b = p.transpose_b ? j * p.k + k : k * p.n + j;
          sum += at(p.in, a, (p.batched_a ? q * p.m * p.k : 0) + in_a) *
                 at(p.in, b, (p.batched_b ? q * p.k * p.n : 0) + in_b);
        }
        const std::int64_t here = (q * p.m + i) * p.n + j;
        if (p.bias == BiasKind::per_column) sum += at(p.bias_dtype, bias, j);
        if (p.bias == BiasKind::per_row) sum += at(p.bias_dtype, bias, i);
        if (p.bias == BiasKind::full) sum += at(p.bias_dtype, bias, here);
        const double expected = activate(p.activation, sum),
                     difference = at(p.out, c, here) - expected;
        error += difference * difference;
        norm += expected * expected;
      }
  return std::sqrt(error / norm);
}

// The same for softmax.
inline Result<double> softmax_error(Executor& device, const VendorProblem& p,
                                    const Runnable& reference) {
  const auto x = random_tensor(p.in, p.m * p.n, 4);
  std::vector<char> y(static_cast<std::size_t>(p.m * p.n * bytes_of(p.out)));
  Bindings buffers;
  WARPLOOM_TRY(buffers["X"], on_device(device, x));
  WARPLOOM_TRY(buffers["Y"], on_device(device, y));
  WARPLOOM_CHECK(device.fill(buffers["Y"], 0xffedffedu));
  WARPLOOM_CHECK(run(device, reference, buffers));
  WARPLOOM_CHECK(device.download(buffers["Y"], y.data(), static_cast<std::int64_t>(y.size())));
  double error = 0, norm = 0;
  for (std::int64_t i = 0; i < p.m; ++i) {
    double sum = 0;
    const auto at = [&](Dtype dtype, const std::vector<char>& data, std::int64_t j) {
      return load_as_double(dtype, data.data(), static_cast<std::size_t>(i * p.n + j));
    };
    for (std::int64_t j = 0; j < p.n; ++j) sum += std::exp(at(p.in, x, j));
    for (std::int64_t j = 0; j < p.n; ++j) {
      const double expected = std::exp(at(p.in, x, j)) / sum,
                   difference = at(p.out, y, j) - expected;
      error += difference * difference;
      norm += expected * expected;
    }
  }
  return std::sqrt(error / norm);
}

// Problems that between them meet every field: odd sizes, transposes, batches, biases, activations.
inline std::vector<VendorProblem> small_matmuls(Dtype dtype) {
  const VendorProblem plain{
      .m = 65, .n = 130, .k = 77, .in = dtype, .out = dtype, .bias_dtype = dtype};
  std::vector<VendorProblem> all = {plain};
  for (const int bits : {1, 2, 3}) {
    VendorProblem p = plain;
    p.transpose_a = bits & 1;
    p.transpose_b = bits & 2;
    all.push_back(p);
  }
  for (const int bits : {1, 2, 3}) {
    VendorProblem p = plain;
    p.batch = 3;
    p.batched_a = bits & 1;
    p.batched_b = bits & 2;
    all.push_back(p);
  }
  for (const BiasKind bias : {BiasKind::per_column, BiasKind::per_row, BiasKind::full}) {
    VendorProblem p = plain;
    p.bias = bias;
    p.activation = Activation::relu;
    all.push_back(p);
  }
  for (const Activation activation : {Activation::gelu_erf, Activation::gelu_tanh, Activation::tanh,
                                      Activation::sigmoid, Activation::silu}) {
    VendorProblem p = plain;
    p.activation = activation;
    all.push_back(p);
  }
  return all;
}

inline std::string text_of(const VendorProblem& p) {
  return std::to_string(p.batch) + "x" + std::to_string(p.m) + "x" + std::to_string(p.n) + "x" +
         std::to_string(p.k) + " " + std::string(name_of(p.in)) + (p.transpose_a ? " At" : "") +
         (p.transpose_b ? " Bt" : "") + " bias " + std::to_string(static_cast<int>(p.bias)) + " " +
         std::string(row_of(p.activation).name) + (p.batched_a ? "" : " one A") +
         (p.batched_b ? "" : " one B");
}
}  // namespace warploom::runtime
