// One graph in the making. An operator that does not fit what is there (a window larger than its
// input, shapes that do not stretch to each other) is refused by the shape rules, and taken back
// with all that was made for it.
#pragma once
#include <map>
#include "base/random.h"
#include "graph_case.h"

namespace warploom::fuzz {
using graph::OpKind;
using graph::Shape;
using graph::TensorId;
using Attributes = std::map<std::string, graph::Attribute>;
using Integers = std::vector<int64_t>;

// How an input, or a constant in its place, is filled.
struct Fill {
  enum Kind : uint8_t {
    normal,
    positive,
    whole
  } kind = normal;  // deviation `scale`; scale·[0.5, 2); integers below `scale`

  double scale = 1;
};

class Maker {
 public:
  Maker(Random& stream, Dtype type) : random(stream), dtype(type) {}

  // One operator, or the few that make sense only together; false where chance chose what does not
  // fit.
  bool step(size_t most_nodes);

  Random& random;
  Dtype dtype;  // of nearly everything
  graph::Graph graph;
  std::map<TensorId, Fill> fills;  // of inputs
  std::vector<TensorId> values;    // of `dtype`, that operators may read

  int64_t below(int64_t bound) {
    return static_cast<int64_t>(random.below(static_cast<uint64_t>(bound)));
  }

  bool chance(int percent) { return below(100) < percent; }

  template <class T> T any(std::initializer_list<T> list) {
    return *(list.begin() + random.below(list.size()));
  }

  int64_t size() { return any<int64_t>({1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 24, 32, 33, 40, 64}); }

  TensorId input(Dtype type, Shape shape, Fill fill);
  TensorId operand(Shape shape, Fill fill = {});  // an input or a constant
  TensorId constant(Dtype type, Shape shape, const std::vector<double>& values);
  TensorId integers(const Integers& values);

  TensorId scalar(double value) { return constant(dtype, {}, {value}); }

  // Something for a binary operator beside x: another value, or an operand that stretches to x.
  TensorId beside(TensorId x, Fill fill = {});

  TensorId add(OpKind op, std::vector<TensorId> inputs,
               Attributes attributes = {});  // kAbsent, from then on, where it fails
  std::vector<TensorId> add_many(OpKind op, std::vector<TensorId> inputs, Attributes attributes,
                                 size_t outputs);
  TensorId cast(TensorId x, Dtype to);

  void keep(TensorId x) {  // for later operators
    if (!failed_ && graph.tensor(x).dtype == dtype) values.push_back(x);
  }

  void give_up() { failed_ = true; }

  const Shape& shape(TensorId id) const { return graph.tensor(id).shape; }

  int64_t axis(TensorId x) { return below(static_cast<int64_t>(shape(x).size())); }

  bool is_given(TensorId id) const { return fills.contains(id); }

  bool narrow() const { return dtype != Dtype::f32; }

  void convolution(TensorId x);
  void pool(TensorId x);
  void channel_norm(TensorId x);
  void matmul(TensorId x);
  void gemm(TensorId x);
  void unary(TensorId x);
  void guarded(TensorId x);
  void binary(TensorId x);
  void jump(TensorId x);
  void choose(TensorId x);
  void through_type(TensorId x);
  void reduction(TensorId x);
  void siblings(TensorId x);
  void extreme_place(TensorId x);
  void prefixes(TensorId x);
  void softmax(TensorId x);
  void row_norm(TensorId x);
  void transpose(TensorId x);
  void reshape(TensorId x);
  void view(TensorId x);
  void slice(TensorId x);
  void concat(TensorId x);
  void pad(TensorId x);
  void gather(TensorId x);
  void repeat(TensorId x);
  void split(TensorId x);
  void blocks(TensorId x);

 private:
  bool failed_ = false;
};
}  // namespace warploom::fuzz
