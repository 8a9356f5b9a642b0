// The rewriting of LinearAttention, whose state is carried from step to step, and of
// CausalConvWithState.
#include <fmt/format.h>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "graph/composite_attention.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "graph/rules.h"

namespace warploom::graph::rewrites {
namespace {
constexpr int64_t kMostSteps = 512;  // each is written out

struct Recurrence {
  int64_t batch = 0;
  int64_t steps = 0;
  int64_t heads = 0;   // of keys, each with a state
  int64_t groups = 1;  // query heads that read one state
  int64_t keys = 0;    // numbers of a key
  int64_t values = 0;  // of a value
  bool gated = false;
  bool corrected = false;
};

enum Input : uint8_t { kQuery, kKey, kValue, kState, kDecay, kBeta };

Status check_gates(const NodeContext& context, const Recurrence& of) {
  const auto given = [&](size_t i, bool wanted, std::string_view name) -> Status {
    if (context.has(i) == wanted) return ok();
    const std::string message = fmt::format("{} does not go with the update rule", name);
    return context.error(ErrorCode::kOnnxName, message, wanted ? "the input" : "no input",
                         context.node.text("update_rule"));
  };
  WARPLOOM_CHECK(given(kDecay, of.gated, "decay"));
  WARPLOOM_CHECK(given(kBeta, of.corrected, "beta"));
  for (const size_t i : {kDecay, kBeta}) {
    if (!context.has(i)) continue;
    const Shape& shape = context.in(i).shape;
    const int64_t columns = shape.size() == 3 ? shape[2] : 0;
    const bool each = columns == of.heads;
    const bool fine = columns == (i == kDecay ? of.heads * of.keys : 1);
    const bool fits = shape.size() == 3 && shape[0] == of.batch && shape[1] == of.steps;
    if (!fits || (!each && !fine))
      return context.error(kShape, "a gate does not fit the heads",
                           fmt::format("[{},{},{}]", of.batch, of.steps, of.heads), shape);
  }
  return ok();
}

Result<Recurrence> recurrence(const NodeContext& context) {
  for (size_t i = 0; i < context.node.inputs.size(); ++i)
    if (context.has(i)) WARPLOOM_CHECK(check_number(context, i, true));
  Recurrence of;
  const std::string rule = context.node.text("update_rule");
  of.gated = rule == "gated" || rule == "gated_delta";
  of.corrected = rule == "delta" || rule == "gated_delta";
  const int64_t heads = context.node.integer("q_num_heads");
  of.heads = context.node.integer("kv_num_heads");
  const Shape& query = context.in(kQuery).shape;
  const Shape& key = context.in(kKey).shape;
  const Shape& value = context.in(kValue).shape;
  const auto fits = [&] {
    if (query.size() != 3 || key.size() != 3 || value.size() != 3) return false;
    if (heads < 1 || of.heads < 1 || heads % of.heads != 0) return false;
    const bool same = key[0] == query[0] && value[0] == query[0] && key[1] == query[1];
    if (!same || value[1] != query[1] || query[2] % heads != 0) return false;
    return key[2] == query[2] / heads * of.heads && value[2] % of.heads == 0;
  };
  if (!fits()) {
    const std::string found = fmt::format("{}, {}, {} of {} and {} heads", to_text(query),
                                          to_text(key), to_text(value), heads, of.heads);
    return context.error(kShape, "query, key and value do not fit",
                         "[B,T,H·G·D], [B,T,H·D], [B,T,H·E]", found);
  }
  of.batch = query[0];
  of.steps = query[1];
  of.groups = heads / of.heads;
  of.keys = query[2] / heads;
  of.values = value[2] / of.heads;
  if (of.steps > kMostSteps)
    return context.error(ErrorCode::kOnnxTooLarge, "too many steps to be written out",
                         fmt::format("at most {}", kMostSteps), of.steps,
                         "give the sequence in parts, with past_state");
  const Shape state = {of.batch, of.heads, of.keys, of.values};
  if (context.has(kState) && context.in(kState).shape != state)
    return context.error(kShape, "past_state does not fit", state, context.in(kState).shape);
  WARPLOOM_CHECK(check_gates(context, of));
  return of;
}

Id in_f32(PrimitiveWriter& writer, Id x) {
  return bits_of(writer.dtype(x)) == 16 ? writer.cast(x, Dtype::f32, "wide") : x;
}

// Writes the steps, S [B,H,D,E] from one to the next.
class Steps {
 public:
  Steps(PrimitiveWriter& writer, const Recurrence& of) : writer_(writer), of_(of) {}

  // o [B,H·G,T,E]; the state is the last one afterwards.
  Id run(double scale) {
    state = writer_.has(kState) ? in_f32(writer_, writer_.raw(kState)) : start();
    if (of_.steps == 0) {
      const Shape none = {of_.batch, 0, of_.heads * of_.groups * of_.values};
      return writer_.table(type(), none, "steps", [](int64_t) { return 0; });
    }
    std::vector<Id> outputs;
    for (int64_t t = 0; t < of_.steps; ++t)
      outputs.push_back(step(t, scale));
    return joined(writer_, outputs, 1, "steps");
  }

  Id state = kAbsent;

 private:
  Id start() {
    const Id zero = writer_.constant(type(), {}, {0}, "zero");
    const Id shape = writer_.list({of_.batch, of_.heads, of_.keys, of_.values}, "shape");
    return writer_.make(OpKind::Expand, {zero, shape}, "state");
  }

  Dtype type() const {
    const Dtype given = writer_.in(kQuery).dtype;
    return bits_of(given) == 16 ? Dtype::f32 : given;
  }

  // Row t of an input of `heads` heads: [B,heads,size].
  Id row(size_t input, int64_t t, int64_t heads, std::string_view what) {
    const Id own = part_of(writer_, writer_.raw(input), 1, t, t + 1, what);
    const int64_t size = writer_.shape(own)[2] / heads;
    return in_f32(writer_, writer_.reshape(own, {of_.batch, heads, size}, what));
  }

  Id column(Id x, std::string_view what) {
    return writer_.reshape(x, chained(writer_.shape(x), {1}), what);
  }

  Id step(int64_t t, double scale) {
    const Id key = row(kKey, t, of_.heads, "key");
    Id value = row(kValue, t, of_.heads, "value");
    const Id tall = column(key, "tall_key");
    if (of_.gated) {
      const Id decay = row(kDecay, t, of_.heads, "decay");
      const Id factor = writer_.make(OpKind::Exp, {decay}, "factor");
      state = writer_.mul(state, column(factor, "factors"), "decayed");
    }
    const List over_keys = {2};
    if (of_.corrected) {
      const Id weighted = writer_.mul(state, tall, "recalled_parts");
      const Id recalled = writer_.reduce(OpKind::ReduceSum, weighted, over_keys, "recalled", 0);
      const int64_t gates = writer_.in(kBeta).shape[2];
      const Id beta = row(kBeta, t, gates, "beta");
      value = writer_.mul(beta, writer_.sub(value, recalled, "news"), "correction");
    }
    const Id flat = writer_.reshape(value, {of_.batch, of_.heads, 1, of_.values}, "flat_value");
    state = writer_.add(state, writer_.mul(tall, flat, "outer"), "state");
    // [B,H,G,D] · [B,H,D,E]
    Id query = row(kQuery, t, of_.heads * of_.groups, "query");
    query = writer_.reshape(query, {of_.batch, of_.heads, of_.groups, of_.keys}, "queries");
    const Id read = writer_.make(OpKind::MatMul, {query, state}, "read");
    const Id scaled = writer_.mul(read, writer_.scalar(scale, read, "scale"), "scaled");
    const int64_t columns = of_.heads * of_.groups * of_.values;
    return writer_.reshape(scaled, {of_.batch, 1, columns}, "step");
  }

  PrimitiveWriter& writer_;
  const Recurrence& of_;
};
}  // namespace

// query, key, value, past state, decay, beta → output, present state.
Result<Outputs> linear_attention(PrimitiveWriter& writer) {
  WARPLOOM_TRY(const Recurrence of, recurrence(writer));
  const double named = writer.node.real("scale");
  const double scale = named != 0 ? named : 1 / std::sqrt(as_double(of.keys));
  const Dtype type = writer.in(kQuery).dtype;
  const Dtype state_type = writer.has(kState) ? writer.in(kState).dtype : type;
  Steps steps(writer, of);
  const Id y = steps.run(scale);
  return Outputs{writer.cast(y, type, "output"), writer.cast(steps.state, state_type, "present")};
}

// input [B,C,L], weights [C,1,k], bias, past state [B,C,k-1] → output, present state.
Result<Outputs> causal_conv(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(same_type(writer, true));
  const Shape x = writer.in(0).shape;
  const Shape weights = writer.in(1).shape;
  const bool fits = x.size() == 3 && weights.size() == 3 && weights[0] == x[1] && weights[1] == 1;
  if (!fits || weights[2] < 1) {
    const std::string found = fmt::format("{} and {}", to_text(x), to_text(weights));
    return writer.error(kShape, "the weights do not fit the channels", "[B,C,L] and [C,1,k]",
                        found);
  }
  const int64_t before = weights[2] - 1;
  const Shape state = {x[0], x[1], before};
  Id whole = kAbsent;
  if (writer.has(3)) {
    if (writer.in(3).shape != state)
      return writer.error(kShape, "past_state does not fit", state, writer.in(3).shape);
    whole =
        before == 0 ? writer.raw(0) : joined(writer, {writer.raw(3), writer.raw(0)}, 2, "whole");
  } else {
    const Id zero = writer.scalar(0, writer.raw(0), "zero");
    whole = writer.pad(writer.raw(0), {0, 0, before}, {0, 0, 0}, zero, "whole");
  }
  std::vector<Id> inputs = {whole, writer.raw(1)};
  if (writer.has(2)) inputs.push_back(writer.raw(2));
  Id y = writer.make(OpKind::Conv, inputs, "conv", {{"group", x[1]}});
  if (writer.node.text("activation") != "none") {
    const Id wide = in_f32(writer, y);
    const Id bent = writer.mul(wide, writer.make(OpKind::Sigmoid, {wide}, "gate"), "silu");
    y = writer.cast(bent, writer.in(0).dtype, "activated");
  }
  const int64_t end = writer.shape(whole)[2];
  const Id present = part_of(writer, whole, 2, end - before, end, "present");
  return Outputs{y, present};
}
}  // namespace warploom::graph::rewrites
