// Graphs that reduce over rows, in every form that the families of rows take.
#pragma once
#include <functional>
#include "support/nets.h"

namespace warploom::test {
struct RowNet {
  std::string name;
  graph::Graph graph;
};

inline std::ostream& operator<<(std::ostream& out, const RowNet& net) {
  return out << net.name;
}

// (x - mean) / sqrt(variance + ε) over axes.
inline graph::TensorId normalized(Net& n, graph::TensorId x, const Ints& axes) {
  using graph::OpKind;
  const auto mean = [&](graph::TensorId id) {
    return n.add(OpKind::ReduceMean, {id, n.ints(axes)});
  };
  const auto centred = n.add(OpKind::Sub, {x, mean(x)});
  const auto variance =
      n.add(OpKind::Add, {mean(n.add(OpKind::Mul, {centred, centred})), n.number(1e-5)});
  return n.add(OpKind::Div, {centred, n.add(OpKind::Sqrt, {variance})});
}

namespace row_forms {
using graph::OpKind;
using graph::TensorId;

// Adds a net by its name and what builds its results.
inline auto adder_to(std::vector<RowNet>& all) {
  return [&all](const std::string& name, const std::function<std::vector<TensorId>(Net&)>& build) {
    Net n;
    const auto outputs = build(n);
    all.push_back({name, n.with(outputs)});
  };
}

inline auto over(OpKind op, int64_t axis) {
  return [=](Net& n, TensorId x) { return n.add(op, {x}, {{"axis", axis}}); };
}

inline TensorId reduce(Net& n, OpKind op, TensorId x, const Ints& axes, int64_t keep = 1) {
  return n.add(op, {x, n.ints(axes)}, {{"keepdims", keep}});
}

inline TensorId scale(Net& n, TensorId x, const graph::Shape& shape) {
  return n.add(OpKind::Add, {n.add(OpKind::Mul, {x, n.x(shape)}), n.x(shape)});
}

inline void add_softmaxes(std::vector<RowNet>& all) {
  const auto add = adder_to(all);
  const auto softmax = over(OpKind::Softmax, -1);
  const auto in_the_middle = over(OpKind::Softmax, 1);
  add("softmax", [&](Net& n) { return std::vector{softmax(n, n.x({6, 768}))}; });
  add("softmax_ragged", [&](Net& n) { return std::vector{softmax(n, n.x({5, 777}))}; });
  add("softmax_of_one_row", [&](Net& n) { return std::vector{softmax(n, n.x({1500}))}; });
  add("softmax_of_bf16",
      [&](Net& n) { return std::vector{softmax(n, n.x({4, 640}, Dtype::bf16))}; });
  add("softmax_of_bytes_ragged", [&](Net& n) {  // no fill of theirs is -infinity
    const auto x = n.add(OpKind::Cast, {n.x({5, 333}, Dtype::u8)},
                         {{"to", int64_t{onnx_type_of(Dtype::f32)}}});
    return std::vector{softmax(n, n.add(OpKind::Mul, {x, n.number(0.02)}))};
  });
  add("log_softmax",
      [&](Net& n) { return std::vector{over(OpKind::LogSoftmax, -1)(n, n.x({4, 1000}))}; });
  add("softmax_in_the_middle",
      [&](Net& n) { return std::vector{in_the_middle(n, n.x({2, 45, 64}))}; });
  add("softmax_in_the_middle_ragged",
      [&](Net& n) { return std::vector{in_the_middle(n, n.x({3, 50, 37}))}; });
  add("softmax_over_few_columns",
      [&](Net& n) { return std::vector{over(OpKind::Softmax, 0)(n, n.x({33, 3}))}; });
  add("softmax_masked_and_scaled",
      [&](Net& n) {  // the mask is stretched along heads, the scale along rows
        const auto scores = n.add(OpKind::Mul, {n.x({2, 3, 4, 300}), n.x({3, 1, 1})});
        return std::vector{softmax(n, n.add(OpKind::Add, {scores, n.x({2, 1, 1, 300})}))};
      });
  add("softmax_times_its_input", [&](Net& n) {
    const auto x = n.x({5, 512});
    return std::vector{n.add(OpKind::Mul, {softmax(n, x), x})};
  });
  add("place_of_the_greatest",
      [&](Net& n) { return std::vector{over(OpKind::ArgMax, 1)(n, n.x({9, 1300}))}; });
  add("place_of_the_least",
      [&](Net& n) { return std::vector{over(OpKind::ArgMin, 0)(n, n.x({40, 70}))}; });
  add("softmax_of_products", [&](Net& n) {  // no fill of the loads serves: masked
    return std::vector{softmax(n, n.add(OpKind::Mul, {n.x({4, 333}), n.x({4, 333})}))};
  });
  add("entropy_of_a_softmax", [&](Net& n) {
    const auto p = softmax(n, n.x({4, 700}));
    return std::vector{
        p, reduce(n, OpKind::ReduceSum, n.add(OpKind::Mul, {p, n.add(OpKind::Log, {p})}), {1})};
  });
  add("log_sum_exp", [&](Net& n) {
    return std::vector{n.add(OpKind::ReduceLogSumExp, {n.x({6, 600}), n.ints({1})})};
  });
}

inline void add_normalizations(std::vector<RowNet>& all) {
  const auto add = adder_to(all);
  add("layer_norm", [&](Net& n) {
    return std::vector{n.add(OpKind::LayerNormalization, {n.x({6, 512}), n.x({512}), n.x({512})},
                             {{"axis", int64_t{-1}}})};
  });
  add("layer_norm_of_long_rows",
      [&](Net& n) { return std::vector{scale(n, normalized(n, n.x({3, 4200}), {1}), {4200})}; });
  add("layer_norm_ragged",
      [&](Net& n) { return std::vector{scale(n, normalized(n, n.x({7, 301}), {1}), {301})}; });
  add("layer_norm_of_a_residual", [&](Net& n) {
    const auto x = n.add(OpKind::Gelu, {n.add(OpKind::Add, {n.x({2, 3, 500}), n.x({500})})});
    const auto sum = n.add(OpKind::Add, {x, n.x({2, 3, 500})});
    return std::vector{scale(n, normalized(n, sum, {2}), {500}), sum};
  });
  add("layer_norm_of_bf16", [&](Net& n) {
    return std::vector{
        n.add(OpKind::LayerNormalization, {n.x({4, 384}, Dtype::bf16), n.x({384}, Dtype::bf16)})};
  });
  add("rms_norm", [&](Net& n) {
    return std::vector{
        n.add(OpKind::RMSNormalization, {n.x({5, 640}), n.x({640})}, {{"axis", int64_t{-1}}})};
  });
  add("rms_norm_in_the_middle", [&](Net& n) {
    const auto x = n.x({2, 30, 6, 8});
    const auto mean = n.add(OpKind::ReduceMean, {n.add(OpKind::Mul, {x, x}), n.ints({1})});
    return std::vector{n.add(OpKind::Div, {x, n.add(OpKind::Sqrt, {mean})})};
  });
  add("instance_norm", [&](Net& n) {
    return std::vector{
        n.add(OpKind::InstanceNormalization, {n.x({2, 3, 12, 20}), n.x({3}), n.x({3})})};
  });
  add("group_norm", [&](Net& n) {
    return std::vector{n.add(OpKind::GroupNormalization, {n.x({2, 12, 6, 9}), n.x({12}), n.x({12})},
                             {{"num_groups", int64_t{3}}})};
  });
  add("group_norm_of_bf16", [&](Net& n) {
    const auto parameters = [&] { return n.x({8}, Dtype::bf16); };
    return std::vector{n.add(OpKind::GroupNormalization,
                             {n.x({2, 8, 5, 20}, Dtype::bf16), parameters(), parameters()},
                             {{"num_groups", int64_t{2}}})};
  });
  add("batch_norm_while_training", [&](Net& n) {
    return std::vector{scale(n, normalized(n, n.x({6, 4, 5, 7}), {0, 2, 3}), {4, 1, 1})};
  });
  add("l2_norm",
      [&](Net& n) { return std::vector{n.add(OpKind::LpNormalization, {n.x({6, 400})})}; });
  add("l2_norm_in_the_middle", [&](Net& n) {
    return std::vector{n.add(OpKind::LpNormalization, {n.x({6, 40, 32})}, {{"axis", int64_t{1}}})};
  });
}

inline void add_reductions(std::vector<RowNet>& all) {
  const auto add = adder_to(all);
  add("l1_of_rows",
      [&](Net& n) { return std::vector{n.add(OpKind::ReduceL1, {n.x({6, 400}), n.ints({1})})}; });
  add("share_of_everything", [&](Net& n) {
    const auto x = n.add(OpKind::Abs, {n.x({9, 100})});
    return std::vector{n.add(OpKind::Div, {x, reduce(n, OpKind::ReduceSum, x, {0, 1})})};
  });
  add("sum_of_rows",
      [&](Net& n) { return std::vector{reduce(n, OpKind::ReduceSum, n.x({9, 333}), {1}, 0)}; });
  add("mean_of_several_axes", [&](Net& n) {
    return std::vector{n.add(OpKind::ReduceMean, {n.x({6, 5, 70}), n.ints({0, 2})})};
  });
  add("max_in_the_middle",
      [&](Net& n) { return std::vector{reduce(n, OpKind::ReduceMax, n.x({3, 41, 60}), {1}, 0)}; });
  add("min_and_max_of_negatives", [&](Net& n) {
    const auto x = n.add(OpKind::Sub, {n.x({4, 250}), n.number(9)});
    return std::vector{n.add(
        OpKind::Sub, {reduce(n, OpKind::ReduceMax, x, {1}), reduce(n, OpKind::ReduceMin, x, {1})})};
  });
  add("where_the_largest_is", [&](Net& n) {
    const auto x = n.x({5, 300});
    const auto top = reduce(n, OpKind::ReduceMax, x, {1});
    const auto places =
        n.add(OpKind::Where, {n.add(OpKind::Equal, {x, top}), n.x({300}), n.number(1e9)});
    return std::vector{reduce(n, OpKind::ReduceMin, places, {1})};
  });
}
}  // namespace row_forms

inline std::vector<RowNet> row_nets() {
  std::vector<RowNet> all;
  row_forms::add_softmaxes(all);
  row_forms::add_normalizations(all);
  row_forms::add_reductions(all);
  return all;
}
}  // namespace warploom::test
