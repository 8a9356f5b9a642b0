// Operators that compute.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "graph/graph.h"
#include "graph_maker.h"

namespace warploom::fuzz {
namespace {
Integers all_axes_from(size_t begin, size_t end) {
  Integers axes(end - begin);
  std::iota(axes.begin(), axes.end(), static_cast<int64_t>(begin));
  return axes;
}
}  // namespace

void Maker::convolution(TensorId x) {
  const Shape s = shape(x);
  if (s.size() < 3 || s.size() > 5) return give_up();
  const int64_t channels = s[1];
  const int64_t group = chance(70) ? 1 : any<int64_t>({channels, 2, 3});
  if (channels % group != 0) return give_up();
  const bool turned = chance(8);
  const int64_t features = group * any<int64_t>({1, 2, 3, 4, 8});
  const int64_t channels_of_group = channels / group;
  Shape weights = turned ? Shape{channels, features / group} : Shape{features, channels_of_group};
  Integers strides;
  Integers dilations;
  Integers pads;
  double taps = 1;
  for (size_t d = 2; d < s.size(); ++d) {
    weights.push_back(any<int64_t>({1, 2, 3, 3, 5}));
    taps *= static_cast<double>(weights.back());
    strides.push_back(any<int64_t>({1, 1, 1, 2, 3}));
    dilations.push_back(any<int64_t>({1, 1, 1, 2}));
  }
  for (size_t d = 0; d < 2 * (s.size() - 2); ++d)
    pads.push_back(any<int64_t>({0, 0, 1, 1, 2}));
  Attributes attributes = {{"group", group}, {"strides", strides}};
  if (chance(50)) attributes["dilations"] = dilations;
  if (chance(15) && !turned)
    attributes["auto_pad"] = any<std::string>({"SAME_UPPER", "SAME_LOWER"});
  else if (chance(75))
    attributes["pads"] = pads;
  const double terms = taps * static_cast<double>(channels_of_group);  // of a sum
  std::vector<TensorId> inputs = {x, operand(weights, {Fill::normal, 1 / std::sqrt(terms)})};
  if (chance(50)) inputs.push_back(operand({features}));
  keep(add(turned ? OpKind::ConvTranspose : OpKind::Conv, inputs, attributes));
}

void Maker::pool(TensorId x) {
  const Shape s = shape(x);
  if (s.size() < 3 || s.size() > 5) return give_up();
  if (chance(25)) return keep(add(any({OpKind::GlobalAveragePool, OpKind::GlobalMaxPool}), {x}));
  const OpKind op = any(
      {OpKind::MaxPool, OpKind::MaxPool, OpKind::AveragePool, OpKind::AveragePool, OpKind::LpPool});
  Integers kernel;
  Integers strides;
  Integers pads(2 * (s.size() - 2));
  Integers dilations;
  for (size_t d = 2; d < s.size(); ++d) {
    kernel.push_back(any<int64_t>({1, 2, 2, 3, 3}));
    strides.push_back(any<int64_t>({1, 2, 2, 3}));
    dilations.push_back(any<int64_t>({1, 1, 2}));
  }
  for (size_t d = 0; d < pads.size(); ++d)
    pads[d] = below(kernel[d % kernel.size()]);
  Attributes attributes = {{"kernel_shape", kernel}, {"strides", strides}};
  if (chance(50)) attributes["pads"] = pads;
  if (chance(20)) attributes["ceil_mode"] = int64_t{1};
  if (op == OpKind::AveragePool && chance(50)) attributes["count_include_pad"] = int64_t{1};
  if (op == OpKind::MaxPool && chance(25)) attributes["dilations"] = dilations;
  keep(add(op, {x}, attributes));
}

void Maker::channel_norm(TensorId x) {
  const Shape s = shape(x);
  if (s.size() < 2) return give_up();
  const Shape line = {s[1]};
  const auto scale = [&] { return operand(line, {Fill::positive, 1}); };
  switch (below(3)) {
    case 0:
      return keep(
          add(OpKind::BatchNormalization, {x, scale(), operand(line), operand(line), scale()}));
    case 1:
      return s.size() < 3 ? give_up()
                          : keep(add(OpKind::InstanceNormalization, {x, scale(), operand(line)}));
    default:
      return s.size() < 3 ? give_up()
                          : keep(add(OpKind::GroupNormalization, {x, scale(), operand(line)},
                                     {{"num_groups", any<int64_t>({1, 2, 3, 4})}}));
  }
}

void Maker::matmul(TensorId x) {
  const Shape s = shape(x);
  if (s.empty()) return give_up();
  if (s.size() >= 2 && chance(25)) {  // another value as it is, or turned
    const TensorId other = values[random.below(values.size())];
    Integers turn = all_axes_from(0, shape(other).size());
    if (turn.size() >= 2) std::swap(turn[turn.size() - 1], turn[turn.size() - 2]);
    return keep(add(OpKind::MatMul,
                    {x, chance(50) ? other : add(OpKind::Transpose, {other}, {{"perm", turn}})}));
  }
  const bool left = chance(75) || s.size() < 2;
  const int64_t k = left ? s.back() : s[s.size() - 2];
  Shape other;
  if (chance(40))
    other.assign(s.begin(), s.end() - std::min<ptrdiff_t>(2, std::ssize(s)));  // a matrix each
  for (int64_t& d : other)
    if (chance(20)) d = 1;
  if (left) other.push_back(k);
  other.push_back(size());
  if (!left) other.push_back(k);
  const TensorId y = operand(other, {Fill::normal, 1 / std::sqrt(static_cast<double>(k))});
  keep(add(OpKind::MatMul, left ? std::vector{x, y} : std::vector{y, x}));
}

void Maker::gemm(TensorId x) {
  const Shape s = shape(x);
  if (s.size() != 2) return give_up();
  const bool ta = chance(30);
  const bool tb = chance(50);
  const int64_t m = s[ta ? 1 : 0];
  const int64_t k = s[ta ? 0 : 1];
  const int64_t n = size();
  std::vector<TensorId> inputs = {x,
                                  operand(tb ? Shape{n, k} : Shape{k, n},
                                          {Fill::normal, 1 / std::sqrt(static_cast<double>(k))})};
  if (chance(70)) inputs.push_back(operand(any<Shape>({{n}, {1, n}, {m, 1}, {m, n}, {}})));
  Attributes attributes = {{"transA", int64_t{ta}}, {"transB", int64_t{tb}}};
  if (chance(30)) {
    attributes["alpha"] = 0.5;
    attributes["beta"] = chance(30) ? 0.0 : 2.0;
  }
  keep(add(OpKind::Gemm, inputs, attributes));
}

void Maker::unary(TensorId x) {
  static constexpr OpKind kOps[] = {
      OpKind::Relu,        OpKind::Sigmoid,   OpKind::Tanh,     OpKind::Gelu,      OpKind::Erf,
      OpKind::Exp,         OpKind::Neg,       OpKind::Abs,      OpKind::LeakyRelu, OpKind::Elu,
      OpKind::HardSigmoid, OpKind::HardSwish, OpKind::Softplus, OpKind::Mish,      OpKind::Selu,
      OpKind::Celu,        OpKind::Softsign,  OpKind::Clip,     OpKind::Relu,      OpKind::Gelu};
  const OpKind op = kOps[random.below(std::size(kOps))];
  Attributes attributes;
  if (op == OpKind::Gelu && chance(50)) attributes["approximate"] = std::string("tanh");
  std::vector<TensorId> inputs = {x};
  if (op == OpKind::Clip) inputs = {x, chance(70) ? scalar(-0.75) : graph::kAbsent, scalar(1.5)};
  keep(add(op, inputs, attributes));
}

// What must stay positive.
void Maker::guarded(TensorId x) {
  TensorId p = graph::kAbsent;
  if (chance(30))
    p = operand(shape(x), {Fill::positive, 1});
  else
    p = add(any({OpKind::Softplus, OpKind::Sigmoid, OpKind::Exp}), {x});
  switch (below(5)) {
    case 0: return keep(add(OpKind::Sqrt, {p}));
    case 1: return keep(add(OpKind::Log, {p}));
    case 2: return keep(add(OpKind::Reciprocal, {p}));
    case 3: return keep(add(OpKind::Pow, {p, scalar(any({0.5, 2.0, 1.5, -1.0}))}));
    default: return keep(add(OpKind::Div, {values[random.below(values.size())], p}));
  }
}

void Maker::binary(TensorId x) {
  const OpKind op =
      any({OpKind::Add, OpKind::Add, OpKind::Mul, OpKind::Mul, OpKind::Sub, OpKind::Max,
           OpKind::Min, OpKind::Div, OpKind::PRelu, OpKind::Sum, OpKind::Mean});
  if (op == OpKind::Div) return keep(add(op, {x, operand(Shape{shape(x)}, {Fill::positive, 1})}));
  if (op == OpKind::PRelu)
    return keep(add(op, {x, operand(shape(x).empty() ? Shape{} : Shape{shape(x).back()})}));
  std::vector<TensorId> inputs = {x, beside(x)};
  if (chance(30) && op != OpKind::PRelu) std::swap(inputs[0], inputs[1]);
  if ((op == OpKind::Sum || op == OpKind::Max || op == OpKind::Mean) && chance(40))
    inputs.push_back(beside(x));
  keep(add(op, inputs));
}

// What has jumps; of narrow types only what is given is exact.
void Maker::jump(TensorId x) {
  if (narrow() && !is_given(x)) return give_up();
  keep(add(any({OpKind::Floor, OpKind::Ceil, OpKind::Round, OpKind::Sign, OpKind::ThresholdedRelu}),
           {x}));
}

void Maker::choose(TensorId x) {
  TensorId condition = graph::kAbsent;
  if (chance(10)) {
    condition = input(Dtype::boolean, shape(x), {Fill::whole, 2});
  } else {
    if (narrow() && !is_given(x)) return give_up();
    const OpKind op =
        any({OpKind::Less, OpKind::Greater, OpKind::LessOrEqual, OpKind::GreaterOrEqual});
    condition = add(op, {x, chance(50) ? scalar(0.25) : operand(shape(x))});
    if (chance(20)) condition = add(OpKind::Not, {condition});
    if (chance(5)) return;  // an output itself
  }
  keep(add(OpKind::Where,
           {condition, values[random.below(values.size())], chance(50) ? scalar(0) : beside(x)}));
}

void Maker::through_type(TensorId x) {
  if (chance(50) && !narrow()) {  // a narrower input joins
    const TensorId y = cast(input(any({Dtype::f16, Dtype::bf16}), shape(x), {}), Dtype::f32);
    return keep(add(any({OpKind::Add, OpKind::Mul}), {x, y}));
  }
  if (narrow() && !is_given(x)) return give_up();
  const Dtype to = any(
      {Dtype::i32, Dtype::i64, Dtype::boolean, Dtype::f16, Dtype::f16, Dtype::bf16, Dtype::bf16});
  const TensorId y = cast(x, to);
  if (to == Dtype::f16 || to == Dtype::bf16) return;  // an output
  if (chance(60)) keep(cast(y, dtype));
}

void Maker::reduction(TensorId x) {
  const auto rank = static_cast<int64_t>(shape(x).size());
  Integers axes;
  int64_t terms = 1;
  for (int64_t d = 0; d < rank; ++d)
    if (chance(45)) {
      axes.push_back(chance(25) ? d - rank : d);
      terms *= shape(x)[static_cast<size_t>(d)];
    }
  if (axes.empty()) return give_up();
  const OpKind op = any({OpKind::ReduceSum, OpKind::ReduceMean, OpKind::ReduceMean,
                         OpKind::ReduceMax, OpKind::ReduceMin, OpKind::ReduceL1, OpKind::ReduceL2,
                         OpKind::ReduceSumSquare, OpKind::ReduceLogSumExp, OpKind::ReduceProd});
  if (op == OpKind::ReduceProd && terms > 6) return give_up();
  Attributes attributes = {{"keepdims", below(2)}};
  std::vector<TensorId> inputs = {x};
  if (chance(40))
    inputs.push_back(integers(axes));
  else
    attributes["axes"] = axes;
  keep(add(op, inputs, attributes));
}

// Two results of one tensor, as of a residual that goes on beside its norm: regions may store both.
void Maker::siblings(TensorId x) {
  using Layer = void (Maker::*)(TensorId);
  const TensorId shared = chance(50) ? x : add(OpKind::Add, {x, beside(x)});
  if (failed_) return;
  for (int i = 0; i < 2; ++i) {
    const auto layer = any<Layer>({&Maker::unary, &Maker::binary, &Maker::reduction,
                                   &Maker::softmax, &Maker::row_norm, &Maker::matmul});
    (this->*layer)(shared);
  }
}

void Maker::extreme_place(TensorId x) {
  if (shape(x).empty() || (narrow() && !is_given(x))) return give_up();
  const TensorId y =
      add(any({OpKind::ArgMax, OpKind::ArgMin}), {x},
          {{"axis", axis(x)}, {"keepdims", below(2)}, {"select_last_index", below(2)}});
  if (chance(50)) keep(cast(y, dtype));
}

void Maker::prefixes(TensorId x) {
  if (shape(x).empty()) return give_up();
  keep(add(OpKind::CumSum, {x, integers({axis(x)})},
           {{"exclusive", below(2)}, {"reverse", below(2)}}));
}

void Maker::softmax(TensorId x) {
  if (shape(x).empty()) return give_up();
  const OpKind op =
      any({OpKind::Softmax, OpKind::Softmax, OpKind::LogSoftmax, OpKind::LpNormalization});
  Attributes attributes = {{"axis", chance(60) ? int64_t{-1} : axis(x)}};
  keep(add(op, {x}, attributes));
}

void Maker::row_norm(TensorId x) {
  const Shape s = shape(x);
  if (s.empty()) return give_up();
  const int64_t at = chance(75) ? std::ssize(s) - 1 : axis(x);
  const Shape line(s.begin() + at, s.end());
  std::vector<TensorId> inputs = {x, operand(line, {Fill::positive, 1})};
  const bool rms = chance(35);
  if (!rms && chance(70)) inputs.push_back(operand(line));
  keep(add(rms ? OpKind::RMSNormalization : OpKind::LayerNormalization, inputs, {{"axis", at}}));
}
}  // namespace warploom::fuzz
