#include "vendor/problem.h"
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>
#include "base/casts.h"
#include "base/rows.h"

namespace warploom::vendor {
namespace {
constexpr std::array kFunctions = {
#define WARPLOOM_FUNCTION(name, dnnl, cudnn, cublaslt, value)          \
  FunctionRow{#name, dnnl, cudnn, cublaslt,                            \
              []([[maybe_unused]] double x, [[maybe_unused]] double a, \
                 [[maybe_unused]] double b) -> double { return value; }},
#include "vendor/functions.def"
};

// By the alternatives of Operation.
constexpr std::array<std::string_view, std::variant_size_v<Operation>> kKindNames = {
    "convolution",
    "transposed convolution",
    "pooling",
    "matmul",
    "softmax",
    "batch norm",
    "layer norm",
    "reduction",
    "LRN",
    "copy",
    "",
    "plain"};

constexpr std::array<std::string_view, 6> kCombineNames = {"add", "sub", "mul",
                                                           "div", "max", "min"};
}  // namespace

std::span<const FunctionRow> functions() {
  return kFunctions;
}

const FunctionRow& row_of(Function function) {
  return kFunctions[as_size(function)];
}

std::string_view name_of(const Operation& operation) {
  return kKindNames[operation.index()];
}

const Place* destination(const Operation& operation) {
  return std::visit(
      [](const auto& one) -> const Place* {
        if constexpr (requires { one.dst; }) return &one.dst;
        return nullptr;
      },
      operation);
}

Place* destination(Operation& operation) {
  return const_cast<Place*>(destination(std::as_const(operation)));
}

std::vector<const Place*> sources(const Step& step) {
  std::vector<const Place*> out;
  std::visit(
      [&](const auto& one) {
        if constexpr (requires { one.src; }) out.push_back(&one.src);
        if constexpr (requires { one.weights; }) out.push_back(&one.weights);
        if constexpr (requires { one.a; }) out.insert(out.end(), {&one.a, &one.b});
        if constexpr (requires { one.mean; })
          for (const Place* each : {&one.scale, &one.shift, &one.mean, &one.variance})
            out.push_back(each);
        if constexpr (requires { one.scale->buffer; }) {
          if (one.scale) out.push_back(&*one.scale);
          if (one.shift) out.push_back(&*one.shift);
        }
      },
      step.operation);
  for (const After& after : step.after)
    if (after.other) out.push_back(&*after.other);
  return out;
}

namespace {
// An addend that varies along one axis at most is called a bias.
bool is_bias(const After& after) {
  const auto varies = [](int64_t size) { return size > 1; };
  return after.combine == Combine::add && std::ranges::count_if(after.other->shape, varies) <= 1;
}

std::string_view word_of(const After& after) {
  if (!after.other) return row_of(after.function).name;
  return is_bias(after) ? "bias" : kCombineNames[as_size(after.combine)];
}
}  // namespace

std::string words_of(const Step& step) {
  std::vector<std::string_view> words;
  if (!name_of(step.operation).empty()) words.push_back(name_of(step.operation));
  for (const After& after : step.after)
    words.push_back(word_of(after));
  return listed(words, {}, " + ");
}

std::string words_of(const std::vector<Step>& steps) {
  using Counted = std::pair<std::string, int>;
  std::vector<Counted> counted;
  for (const Step& step : steps) {
    std::string words = words_of(step);
    const auto known = std::ranges::find(counted, words, &Counted::first);
    if (known == counted.end())
      counted.emplace_back(std::move(words), 1);
    else
      ++known->second;
  }
  const auto text = [](const Counted& one) {
    return one.second > 1 ? fmt::format("{} ×{}", one.first, one.second) : one.first;
  };
  return listed(counted, text);
}
}  // namespace warploom::vendor
