// What one step of RNN, GRU and LSTM does.
#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "base/rows.h"
#include "graph/graph.h"
#include "graph/recurrence.h"
#include "graph/rules.h"

namespace warploom::graph {
namespace {
constexpr std::string_view kAffine = "Affine";
constexpr std::string_view kScaledTanh = "ScaledTanh";
constexpr ActivationRow kActivations[] = {
    {"Relu", OpKind::Relu, {}, {}},
    {"Tanh", OpKind::Tanh, {}, {}},
    {"Sigmoid", OpKind::Sigmoid, {}, {}},
    {kAffine, OpKind::Identity, 1, 0},
    {"LeakyRelu", OpKind::LeakyRelu, as_double(0.01f), {}},
    {"ThresholdedRelu", OpKind::ThresholdedRelu, 1, {}},
    {kScaledTanh, OpKind::Tanh, 1, 1},
    {"HardSigmoid", OpKind::HardSigmoid, as_double(0.2f), 0.5},
    {"Elu", OpKind::Elu, 1, {}},
    {"Softsign", OpKind::Softsign, {}, {}},
    {"Softplus", OpKind::Softplus, {}, {}},
};

bool same_word(std::string_view a, std::string_view b) {
  const auto same = [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  };
  return std::ranges::equal(a, b, same);
}

// Values of a list that are used up one after another.
struct Supply {
  std::vector<double> values;
  size_t used = 0;

  std::optional<double> next(std::optional<double> otherwise) {
    if (!otherwise || used == values.size()) return otherwise;
    return values[used++];
  }
};
}  // namespace

Status Recurrence::read_activations() {
  std::vector<std::string> names = writer_.node.attribute<std::vector<std::string>>("activations");
  const size_t count = kind_.activations.size() * as_size(directions_);
  if (names.empty())
    for (size_t i = 0; i < count; ++i)
      names.emplace_back(kind_.activations[i % kind_.activations.size()]);
  if (names.size() != count)
    return writer_.error(kAttribute, "wrong number of activations", as_int64(count),
                         as_int64(names.size()));
  Supply alphas{writer_.node.attribute<std::vector<double>>("activation_alpha")};
  Supply betas{writer_.node.attribute<std::vector<double>>("activation_beta")};
  for (const std::string& name : names) {
    const auto is_meant = [&](const ActivationRow& row) { return same_word(row.name, name); };
    const auto* const row = std::ranges::find_if(kActivations, is_meant);
    if (row == std::end(kActivations))
      return writer_.error(kAttribute, "an activation is unknown",
                           listed(kActivations, &ActivationRow::name), name);
    const double alpha = alphas.next(row->alpha).value_or(0);
    const double beta = betas.next(row->beta).value_or(0);
    activations_.push_back({row, alpha, beta});
  }
  for (const Supply& supply : {alphas, betas})
    if (supply.used < supply.values.size())
      return writer_.error(kAttribute, "more parameters than the activations take",
                           as_int64(supply.used), as_int64(supply.values.size()),
                           "leave out those of activations that have none");
  return ok();
}

Id Recurrence::activated(const Activation& by, Id x, const std::string& what) {
  if (writer_.node.attributes.contains("clip")) {
    const double bound = writer_.node.real("clip");
    x = writer_.make(OpKind::Clip, {x, number(-bound), number(bound)}, what + "_clipped");
  }
  const ActivationRow& row = *by.row;
  if (row.name == kAffine) {
    const Id scaled = writer_.mul(x, number(by.alpha), what + "_scaled");
    return writer_.add(scaled, number(by.beta), what);
  }
  if (row.name == kScaledTanh) {
    const Id scaled = writer_.mul(x, number(by.beta), what + "_scaled");
    const Id bent = writer_.make(OpKind::Tanh, {scaled}, what + "_tanh");
    return writer_.mul(bent, number(by.alpha), what);
  }
  std::map<std::string, Attribute> attributes;
  if (row.alpha) attributes["alpha"] = by.alpha;
  if (row.beta) attributes["beta"] = by.beta;
  return writer_.make(row.op, {x}, what, attributes);
}

// h' = f(a + h·Rᵀ)
State Recurrence::rnn_step(const Side& side, Id a, const State& before, const std::string& at) {
  if (before.h != kAbsent) {
    const Id product = writer_.make(OpKind::MatMul, {before.h, side.recurrent}, at + "/product");
    a = writer_.add(a, wide(product, at + "/wide"), at + "/sum");
  }
  return {activated(side.activations[0], a, at + "/h"), kAbsent};
}

// z = f(a_z + h·R_zᵀ), r = f(a_r + h·R_rᵀ), n = g(a_n + (r∘h)·R_nᵀ) or g(a_n + r∘(h·R_nᵀ + b)),
// h' = (1-z)∘n + z∘h
State Recurrence::gru_step(const Side& side, Id a, const State& before, const std::string& at) {
  const bool starts = before.h == kAbsent;
  const int64_t two = 2 * hidden_;
  const int64_t all = 3 * hidden_;
  Id gates = part(a, 1, 0, two, at + "/gates_x");
  Id candidate = gate(a, 2, at + "/n_x");
  const auto times = [&](Id h, int64_t from, int64_t to, const std::string& what) {
    const std::string weights = fmt::format("{}_r{}_{}", side.prefix, from, to);
    const Id r = part(side.recurrent, 1, from, to, weights);
    return wide(writer_.make(OpKind::MatMul, {h, r}, at + what), at + what + "_wide");
  };
  Id late = side.late_bias;  // the candidate's part that is reset
  if (!starts && resets_late_) {
    const Id product = times(before.h, 0, all, "/product");
    gates = writer_.add(gates, part(product, 1, 0, two, at + "/gates_h"), at + "/gates");
    const Id of_state = gate(product, 2, at + "/n_h");
    late = late == kAbsent ? of_state : writer_.add(of_state, late, at + "/n_late");
  } else if (!starts) {
    gates = writer_.add(gates, times(before.h, 0, two, "/product"), at + "/gates");
  }
  const Id z = activated(side.activations[0], gate(gates, 0, at + "/z_in"), at + "/z");
  const Id r = activated(side.activations[0], gate(gates, 1, at + "/r_in"), at + "/r");
  if (!starts && !resets_late_) {
    const Id h = wide(before.h, at + "/wide_h");
    const Id reset = writer_.cast(writer_.mul(r, h, at + "/reset"), type_, at + "/reset_narrow");
    candidate = writer_.add(candidate, times(reset, two, all, "/candidate"), at + "/n_sum");
  } else if (late != kAbsent) {
    candidate = writer_.add(candidate, writer_.mul(r, late, at + "/reset"), at + "/n_sum");
  }
  const Id n = activated(side.activations[1], candidate, at + "/n");
  const Id share = writer_.sub(number(1), z, at + "/share");
  const Id fresh = writer_.mul(share, n, at + "/fresh");
  if (starts) return {fresh, kAbsent};
  const Id old = writer_.mul(z, wide(before.h, at + "/h_before"), at + "/old");
  return {writer_.add(fresh, old, at + "/h"), kAbsent};
}

// i, o, f, g from a + h·Rᵀ, peepholes beside: c' = f∘c + i∘g, h' = o∘tanh(c')
State Recurrence::lstm_step(const Side& side, Id a, const State& before, const std::string& at) {
  if (before.h != kAbsent) {
    const Id product = writer_.make(OpKind::MatMul, {before.h, side.recurrent}, at + "/product");
    a = writer_.add(a, wide(product, at + "/wide"), at + "/gates");
  }
  const auto opened = [&](int64_t g, Id cell, const std::string& what) {
    Id in = gate(a, g, what + "_in");
    if (cell != kAbsent && !side.peepholes.empty()) {
      const Id seen = writer_.mul(side.peepholes[as_size(g)], cell, what + "_seen");
      in = writer_.add(in, seen, what + "_sum");
    }
    return activated(side.activations[0], in, what);
  };
  const Id i = opened(0, before.c, at + "/i");
  const Id g = activated(side.activations[1], gate(a, 3, at + "/g_in"), at + "/g");
  Id c = writer_.mul(i, g, at + "/fresh");
  if (before.c != kAbsent) {
    const bool coupled = writer_.node.integer("input_forget") != 0;
    const Id f = coupled ? writer_.sub(number(1), i, at + "/f") : opened(2, before.c, at + "/f");
    c = writer_.add(writer_.mul(f, before.c, at + "/old"), c, at + "/c");
  }
  const Id o = opened(1, c, at + "/o");
  return {writer_.mul(o, activated(side.activations[2], c, at + "/bent"), at + "/h"), c};
}
}  // namespace warploom::graph
