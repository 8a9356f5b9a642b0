// The rewriting of RNN, GRU and LSTM: one product of all steps with the weights of the inputs, then
// the steps one behind another.
//
//   x [T,B,I] · Wᵀ [I,G·H] + bias   →   a [T,B,G·H]      one product for T steps, of each direction
//   h_t = cell(a_t + h_{t-1} · Rᵀ)                       G gates of H numbers, T times
//   Y = h_0, h_1, … of all steps; Y_h, Y_c what the last one leaves
//
// The reverse direction goes from step T-1 to 0. Of a sequence that ends after its length, steps
// from there on change nothing and make 0; in reverse they come first, so that the state is still
// the initial one where the sequence begins. In layout 1 the batch comes before the steps.
//
// Rules as ONNX has them. `clip` bounds what every activation is given. activation_alpha and _beta
// are used up in the order of the activations, by those that have one.
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "graph/recurrence.h"
#include "graph/rules.h"

namespace warploom::graph {
namespace {
constexpr int64_t kMostSteps = 1 << 14;
// Of one Concat: more would be more arguments than a kernel takes.
constexpr size_t kMostParts = 32;
}  // namespace

Id Recurrence::known_list(int64_t value) {
  const auto [known, fresh] = lists_.try_emplace(value, kAbsent);
  if (fresh) known->second = writer_.list({value}, fmt::format("at{}", value));
  return known->second;
}

Id Recurrence::number(double value) {
  const auto [known, fresh] = numbers_.try_emplace(value, kAbsent);
  if (fresh) known->second = writer_.constant(wide_type(), {}, {value}, fmt::format("n{}", value));
  return known->second;
}

Id Recurrence::part(Id x, int64_t axis, int64_t from, int64_t to, const std::string& what) {
  if (from == 0 && to == writer_.shape(x)[as_size(axis)]) return x;
  const std::vector<Id> inputs = {x, known_list(from), known_list(to), known_list(axis)};
  return writer_.make(OpKind::Slice, inputs, what);
}

Id Recurrence::gate(Id a, int64_t g, const std::string& what) {
  return part(a, 1, g * hidden_, (g + 1) * hidden_, what);
}

Status Recurrence::check_input(size_t i, std::string_view what, const Shape& wanted) {
  if (!writer_.has(i)) return ok();
  const Tensor& tensor = writer_.in(i);
  if (tensor.dtype != type_) return type_error(writer_, type_, tensor.dtype);
  if (tensor.shape == wanted) return ok();
  return writer_.error(kShape, fmt::format("{} of a recurrence has an unfit shape", what), wanted,
                       tensor.shape);
}

Status Recurrence::check() {
  WARPLOOM_CHECK(check_number(writer_, kX, true));
  const Shape& x = writer_.in(kX).shape;
  const Shape& r = writer_.in(kR).shape;
  if (x.size() != 3)
    return writer_.error(kShape, "a recurrence's input is no batch of sequences", "3 axes", x);
  if (r.size() != 3)
    return writer_.error(kShape, "a recurrence's weights have an unfit shape", "3 axes", r);
  steps_ = x[batch_first() ? 1 : 0];
  batch_ = x[batch_first() ? 0 : 1];
  features_ = x[2];
  hidden_ = r[2];
  directions_ = writer_.node.text("direction") == "bidirectional" ? 2 : 1;
  resets_late_ = writer_.node.integer("linear_before_reset") != 0;
  const int64_t said = writer_.node.integer("hidden_size", hidden_);
  if (said != hidden_)
    return writer_.error(kAttribute, "hidden_size is not what the weights say", hidden_, said);
  if (steps_ > kMostSteps / directions_)
    return writer_.error(ErrorCode::kOnnxTooLarge, "a recurrence has too many steps",
                         fmt::format("at most {}", kMostSteps / directions_), steps_,
                         "run it on parts of the sequence, each with the state that the one "
                         "before leaves");
  const int64_t rows = kind_.gates * hidden_;
  WARPLOOM_CHECK(check_input(kW, "W", {directions_, rows, features_}));
  WARPLOOM_CHECK(check_input(kR, "R", {directions_, rows, hidden_}));
  WARPLOOM_CHECK(check_input(kBias, "B", {directions_, 2 * rows}));
  const Shape batches_first = {batch_, directions_, hidden_};
  const Shape state = batch_first() ? batches_first : Shape{directions_, batch_, hidden_};
  WARPLOOM_CHECK(check_input(kState, "initial_h", state));
  WARPLOOM_CHECK(check_input(kCell, "initial_c", state));
  WARPLOOM_CHECK(check_input(kPeepholes, "P", {directions_, 3 * hidden_}));
  if (!writer_.has(kLengths)) return ok();
  const Tensor& lengths = writer_.in(kLengths);
  if (lengths.dtype != Dtype::i32 && lengths.dtype != Dtype::i64)
    return type_error(writer_, Dtype::i32, lengths.dtype);
  if (lengths.shape == Shape{batch_}) return ok();
  return writer_.error(kShape, "sequence_lens of a recurrence has an unfit shape", Shape{batch_},
                       lengths.shape);
}

// Lengths that are known to be whole say nothing.
void Recurrence::read_lengths() {
  if (!writer_.has(kLengths)) return;
  const auto known = constant_integers(writer_.graph, writer_.raw(kLengths));
  const auto is_whole = [&](int64_t length) { return length >= steps_; };
  if (known && std::ranges::all_of(*known, is_whole)) return;
  lengths_ = writer_.reshape(writer_.raw(kLengths), {batch_, 1}, "lengths");
}

// [D,1,G·H]: of the inputs and of the states; of a GRU that resets late the last gate's only of
// the inputs.
Id Recurrence::sum_of_biases() {
  const int64_t rows = kind_.gates * hidden_;
  const Id both = wide(writer_.raw(kBias), "biases");
  const Id of_inputs = part(both, 1, 0, rows, "input_bias");
  Id of_states = part(both, 1, rows, 2 * rows, "state_bias");
  if (resets_late_) {
    const Id early = part(of_states, 1, 0, 2 * hidden_, "early_bias");
    of_states = writer_.pad(early, {0, 0}, {0, hidden_}, number(0), "padded_bias");
  }
  const Id sum = writer_.add(of_inputs, of_states, "bias");
  return writer_.reshape(sum, {directions_, 1, rows}, "bias_rows");
}

// What all inputs give all gates, [D·T,B,G·H].
Id Recurrence::projected() {
  const int64_t rows = kind_.gates * hidden_;
  const List swapped = {1, 0, 2};
  Id x = writer_.raw(kX);
  if (batch_first()) x = writer_.make(OpKind::Transpose, {x}, "steps_first", {{"perm", swapped}});
  const List turned = {0, 2, 1};
  Id w = writer_.make(OpKind::Transpose, {writer_.raw(kW)}, "w", {{"perm", turned}});
  // One direction is a plain product of matrices.
  const bool one = directions_ == 1;
  const int64_t lines = steps_ * batch_;
  x = writer_.reshape(x, one ? Shape{lines, features_} : Shape{1, lines, features_}, "all_steps");
  if (one) w = writer_.reshape(w, {features_, rows}, "w_matrix");
  Id a = wide(writer_.make(OpKind::MatMul, {x, w}, "projection"), "wide_projection");
  if (writer_.has(kBias)) {
    const Id bias = sum_of_biases();
    a = writer_.add(a, one ? writer_.reshape(bias, {rows}, "bias_row") : bias, "projected");
  }
  return writer_.reshape(a, {directions_ * steps_, batch_, rows}, "steps");
}

Side Recurrence::side_of(int64_t number) {
  Side side;
  side.number = number;
  side.reverse = number == 1 || writer_.node.text("direction") == "reverse";
  side.prefix = side.reverse ? "back" : "step";
  const int64_t rows = kind_.gates * hidden_;
  const auto own = [&](size_t i, std::string_view what) {
    const Id x = writer_.raw(i);
    return part(x, 0, number, number + 1, fmt::format("{}_{}", side.prefix, what));
  };
  const Id r = writer_.reshape(own(kR, "r"), {rows, hidden_}, side.prefix + "_r_matrix");
  side.recurrent = writer_.make(OpKind::Transpose, {r}, side.prefix + "_r_turned");
  if (resets_late_ && writer_.has(kBias)) {
    const Id bias = wide(own(kBias, "b"), side.prefix + "_wide_bias");
    const int64_t end = 2 * rows;
    const Id late = part(bias, 1, end - hidden_, end, side.prefix + "_late");
    side.late_bias = writer_.reshape(late, {hidden_}, side.prefix + "_late_bias");
  }
  if (writer_.has(kPeepholes)) {
    const Id all = wide(own(kPeepholes, "p"), side.prefix + "_wide_peepholes");
    for (int64_t g = 0; g < 3; ++g) {
      const Id one = gate(all, g, fmt::format("{}_p{}", side.prefix, g));
      side.peepholes.push_back(
          writer_.reshape(one, {hidden_}, fmt::format("{}_peephole{}", side.prefix, g)));
    }
  }
  const size_t each = kind_.activations.size();
  side.activations = std::span(activations_).subspan(as_size(number) * each, each);
  return side;
}

State Recurrence::initial(const Side& side) {
  const auto given = [&](size_t i, std::string_view what) {
    Id state = writer_.raw(i);
    if (state == kAbsent) return kAbsent;
    const int64_t axis = batch_first() ? 1 : 0;
    const std::string name = fmt::format("{}_{}", side.prefix, what);
    state = part(state, axis, side.number, side.number + 1, name);
    return writer_.reshape(state, {batch_, hidden_}, name + "_matrix");
  };
  const Id h = given(kState, "initial_h");
  const Id c = given(kCell, "initial_c");
  return {h, c == kAbsent ? c : wide(c, side.prefix + "_wide_c")};
}

// Where the sequence has ended, what was before.
State Recurrence::kept(Id mask, const State& after, const State& before, const std::string& at) {
  const auto chosen = [&](Id now, Id then, const std::string& what) {
    if (now == kAbsent) return now;
    if (then == kAbsent) then = writer_.scalar(0, now, what + "_zero");
    return writer_.where(mask, now, then, what);
  };
  return {chosen(after.h, before.h, at + "/kept_h"), chosen(after.c, before.c, at + "/kept_c")};
}

// The states of all steps, in the order of the sequence; what the last one leaves.
State Recurrence::unroll(const Side& side, std::vector<Id>& made) {
  State state = initial(side);
  made.assign(as_size(steps_), kAbsent);
  for (int64_t i = 0; i < steps_; ++i) {
    const int64_t t = side.reverse ? steps_ - 1 - i : i;
    const std::string at = fmt::format("{}{}", side.prefix, t);
    const auto place = as_double(side.number * steps_ + t);
    const Id index = writer_.constant(Dtype::i64, {}, {place}, at + "/index");
    const int64_t first = 0;
    const Id a = writer_.make(OpKind::Gather, {projected_, index}, at + "/x", {{"axis", first}});
    State next = (this->*kind_.step)(side, a, state, at);
    next.h = writer_.cast(next.h, type_, at + "/narrow");
    made[as_size(t)] = next.h;
    if (lengths_ != kAbsent) {
      const Id step = writer_.scalar(as_double(t), lengths_, at + "/t");
      const Id mask = writer_.make(OpKind::Less, {step, lengths_}, at + "/mask");
      const Id zero = writer_.scalar(0, next.h, at + "/zero");
      made[as_size(t)] = writer_.where(mask, next.h, zero, at + "/y");
      next = kept(mask, next, state, at);
    }
    state = next;
  }
  return state;
}

// [B,H] each, as [T·B,H].
Id Recurrence::stacked(std::vector<Id> parts, const std::string& what) {
  const int64_t first = 0;
  for (int level = 0; parts.size() > 1; ++level) {
    std::vector<Id> joined;
    for (size_t i = 0; i < parts.size(); i += kMostParts) {
      const auto begin = parts.begin() + static_cast<ptrdiff_t>(i);
      const auto end = begin + static_cast<ptrdiff_t>(std::min(kMostParts, parts.size() - i));
      const std::string name = fmt::format("{}_{}_{}", what, level, i / kMostParts);
      const bool alone = end - begin == 1;
      joined.push_back(alone ? *begin
                             : writer_.make(OpKind::Concat, {begin, end}, name, {{"axis", first}}));
    }
    parts = std::move(joined);
  }
  return parts[0];
}

// Of each direction [T·B,H], as the output Y.
Id Recurrence::all_states(const std::vector<Id>& parts) {
  const int64_t directions = 1;
  std::vector<Id> apart;
  for (const Id part : parts)
    apart.push_back(writer_.reshape(part, {steps_, 1, batch_, hidden_}, "states"));
  Id y = apart[0];
  if (apart.size() > 1) y = writer_.make(OpKind::Concat, apart, "both", {{"axis", directions}});
  if (!batch_first()) return y;
  const List order = {2, 0, 1, 3};
  return writer_.make(OpKind::Transpose, {y}, "y", {{"perm", order}});
}

// Of each direction [B,H], as the output Y_h or Y_c.
Id Recurrence::last_states(const std::vector<Id>& parts, std::string_view what) {
  const int64_t axis = batch_first() ? 1 : 0;
  const Shape to = batch_first() ? Shape{batch_, 1, hidden_} : Shape{1, batch_, hidden_};
  std::vector<Id> apart;
  for (const Id part : parts) {
    const Id state = writer_.cast(part, type_, fmt::format("{}_narrow", what));
    apart.push_back(writer_.reshape(state, to, fmt::format("{}_part", what)));
  }
  if (apart.size() == 1) return apart[0];
  return writer_.make(OpKind::Concat, apart, what, {{"axis", axis}});
}

Result<Outputs> Recurrence::run() {
  WARPLOOM_CHECK(check());
  WARPLOOM_CHECK(read_activations());
  read_lengths();
  if (steps_ > 0) projected_ = projected();
  std::vector<Id> all;
  std::vector<Id> last_h;
  std::vector<Id> last_c;
  const auto or_zeros = [&](Id state, std::string_view what) {
    if (state != kAbsent) return state;
    return writer_.table(type_, {batch_, hidden_}, what, [](int64_t) { return 0; });
  };
  for (int64_t d = 0; d < directions_; ++d) {
    const Side side = side_of(d);
    std::vector<Id> made;
    const State left = unroll(side, made);
    if (made.empty())
      all.push_back(writer_.table(type_, {0, hidden_}, "nothing", [](int64_t) { return 0; }));
    else
      all.push_back(stacked(std::move(made), side.prefix + "_states"));
    last_h.push_back(or_zeros(left.h, "h"));
    last_c.push_back(or_zeros(left.c, "c"));
  }
  Outputs outputs = {all_states(all), last_states(last_h, "y_h")};
  if (writer_.node.op == OpKind::LSTM) outputs.push_back(last_states(last_c, "y_c"));
  return outputs;
}

namespace rewrites {
Result<Outputs> rnn(PrimitiveWriter& writer) {
  return Recurrence(writer, {1, {"Tanh"}, &Recurrence::rnn_step}).run();
}

Result<Outputs> gru(PrimitiveWriter& writer) {
  return Recurrence(writer, {3, {"Sigmoid", "Tanh"}, &Recurrence::gru_step}).run();
}

Result<Outputs> lstm(PrimitiveWriter& writer) {
  return Recurrence(writer, {4, {"Sigmoid", "Tanh", "Tanh"}, &Recurrence::lstm_step}).run();
}
}  // namespace rewrites
}  // namespace warploom::graph
