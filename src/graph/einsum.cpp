// Einsum as transposes, products and sums of primitives: operands are contracted one after another,
// from the left.
//
//   bhqd,bhkd->bhqk   batch b h (in both and kept), m q (the first's), n k (the second's), summed
//   d:   [b,h,q,d] · [b,h,d,k]
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/rows.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "graph/rules.h"

namespace warploom::graph::rewrites {
namespace {
using Labels =
    std::string;  // one an axis; those of an ellipsis are numbered from the right, 1 the last

struct Operand {
  Id id;
  Labels labels;
};

Labels picked(const Labels& from, const Labels& others, bool among) {
  Labels out;
  std::ranges::copy_if(from, std::back_inserter(out),
                       [&](char label) { return contains(others, label) == among; });
  return out;
}

class Einsum {
 public:
  explicit Einsum(PrimitiveWriter& writer) : writer_(writer) {}

  Result<Outputs> run() {
    WARPLOOM_CHECK(same_type(writer_, true));
    std::string equation = writer_.node.text("equation");
    std::erase(equation, ' ');
    const auto arrow = equation.find("->");
    std::string terms = equation.substr(0, arrow);
    if (std::ranges::count(terms, ',') + 1 != std::ssize(writer_.node.inputs))
      return wrong("a term for each input");
    std::vector<Operand> operands;
    for (size_t i = 0; i < writer_.node.inputs.size(); ++i) {
      const auto comma = terms.find(',');
      const Shape shape = writer_.in(i).shape;
      WARPLOOM_TRY(Labels labels, labels_of(terms.substr(0, comma), std::ssize(shape)));
      terms.erase(0, comma == std::string::npos ? comma : comma + 1);
      for (size_t d = 0; d < labels.size(); ++d) {
        int64_t& size = sizes_.try_emplace(labels[d], shape[d]).first->second;
        if (size == 1) size = shape[d];  // what is 1 somewhere stretches
        if (shape[d] != size && shape[d] != 1) return wrong("axes of one size under one label");
      }
      all_ += labels;
      operands.push_back({writer_.raw(i), std::move(labels)});
    }
    for (Operand& operand : operands)
      operand = diagonal(unstretched(operand));
    // Without an arrow: what is named once, in the alphabet's order behind what an ellipsis stands
    // for.
    std::string ends = arrow == std::string::npos ? "..." : equation.substr(arrow + 2);
    for (const auto& [label, size] : sizes_)
      if (arrow == std::string::npos && label >= 'A' && std::ranges::count(all_, label) == 1)
        ends += label;
    WARPLOOM_TRY(const Labels out, labels_of(ends, -1));
    if (picked(out, all_, true) != out) return wrong("results named by the operands' labels");
    while (operands.size() > 1) {
      Labels kept = out;
      for (size_t i = 2; i < operands.size(); ++i)
        kept += operands[i].labels;
      operands[1] = contracted(operands[0], operands[1], kept);
      operands.erase(operands.begin());
    }
    const Operand sum = summed(operands[0], out);
    const Labels wanted = picked(out, operands[0].labels, true);
    return Outputs{ordered(sum, wanted).id};
  }

 private:
  PrimitiveWriter& writer_;
  std::map<char, int64_t> sizes_;
  Labels all_;  // as often as they are named
  char dots_ = 0;

  tl::unexpected<Error> wrong(const std::string& expected) const {
    return writer_.error(ErrorCode::kOnnxAttribute, "the equation does not fit the operands",
                         expected, writer_.node.text("equation"));
  }

  // Without axes of 1 that stretch.
  Operand unstretched(const Operand& operand) {
    const Shape given = writer_.shape(operand.id);
    Operand kept{operand.id, {}};
    Shape shape;
    for (size_t d = 0; d < given.size(); ++d) {
      if (given[d] == 1 && sizes_.at(operand.labels[d]) != 1) continue;
      kept.labels += operand.labels[d];
      shape.push_back(given[d]);
    }
    kept.id = writer_.reshape(operand.id, shape, "narrow");
    return kept;
  }

  // Of two axes of one label those elements whose places on both are the same: [n,n] as [n·n], of
  // which every n+1st.
  Operand diagonal(Operand operand) {
    for (size_t second = 1; second < operand.labels.size(); ++second) {
      const size_t first = operand.labels.find(operand.labels[second]);
      if (first == second) continue;
      List order = span(0, operand.labels.size());
      order.erase(order.begin() + as_int(second));
      order.insert(order.begin() + as_int(first) + 1, as_int64(second));
      const std::map<std::string, Attribute> perm = {{"perm", order}};
      const Id together = writer_.make(OpKind::Transpose, {operand.id}, "together", perm);
      Shape joined = writer_.shape(together);
      const int64_t size = joined[first];
      joined.erase(joined.begin() + as_int(first));
      joined[first] = size * size;
      const Id flat = writer_.reshape(together, joined, "flat");
      const auto place = [&](int64_t i) { return i * (size + 1); };
      const Id places = writer_.table(Dtype::i64, {size}, "diagonal", place);
      const std::map<std::string, Attribute> axis = {{"axis", as_int64(first)}};
      operand.id = writer_.make(OpKind::Gather, {flat, places}, "diagonal", axis);
      operand.labels.erase(second, 1);
      --second;
    }
    return operand;
  }

  // An ellipsis stands for what is left of `rank` axes; -1: for as many as in the operands.
  static bool is_letter(char c) {
    const bool lower = c >= 'a' && c <= 'z';
    return lower || (c >= 'A' && c <= 'Z');
  }

  Result<Labels> labels_of(const std::string& term, int64_t rank) {
    Labels out;
    for (size_t i = 0; i < term.size(); ++i) {
      const bool letter = is_letter(term[i]);
      const bool is_new = rank >= 0 || !contains(out, term[i]);
      if (letter && is_new)
        out += term[i];
      else if (term.substr(i, 3) != "...")
        return wrong("letters, each once in the result, and ...");
      else {
        const auto dots = rank < 0 ? int64_t{dots_} : rank - (std::ssize(term) - 3);
        for (auto dot = dots; dot > 0; --dot)
          out += static_cast<char>(dot);
        dots_ = std::max(dots_, static_cast<char>(dots));
        i += 2;
      }
    }
    if (rank >= 0 && std::ssize(out) != rank) return wrong("a label for each axis");
    return out;
  }

  Operand summed(const Operand& operand, const Labels& kept) {
    List axes;
    for (size_t d = 0; d < operand.labels.size(); ++d)
      if (!contains(kept, operand.labels[d])) axes.push_back(as_int64(d));
    const Id sum = writer_.reduce(OpKind::ReduceSum, operand.id, axes, "sum", 0);
    return {sum, picked(operand.labels, kept, true)};
  }

  Operand ordered(const Operand& operand, const Labels& wanted) {
    if (wanted == operand.labels) return operand;
    List perm;
    for (const char label : wanted)
      perm.push_back(as_int64(operand.labels.find(label)));
    const std::map<std::string, Attribute> order = {{"perm", perm}};
    const Id turned = writer_.make(OpKind::Transpose, {operand.id}, "turned", order);
    return {turned, wanted};
  }

  Shape shape_of(const Labels& labels) const {
    Shape out;
    for (const char label : labels)
      out.push_back(sizes_.at(label));
    return out;
  }

  Operand contracted(Operand a, Operand b, const Labels& kept) {
    a = summed(a, kept + b.labels);
    b = summed(b, kept + a.labels);
    const Labels shared = picked(a.labels, b.labels, true);
    const Labels batch = picked(shared, kept, true);
    const Labels k = picked(shared, kept, false);
    const Labels m = picked(a.labels, shared, false);
    const Labels n = picked(b.labels, shared, false);
    const auto shaped = [&](const Operand& operand, const Labels& rows, const Labels& columns,
                            std::string_view what) {
      Shape shape = shape_of(batch);
      shape.push_back(element_count(shape_of(rows)));
      shape.push_back(element_count(shape_of(columns)));
      return writer_.reshape(ordered(operand, batch + rows + columns).id, shape, what);
    };
    // Without a sum a column times a row.
    const Id left = shaped(a, m, k, "left");
    const Id right = shaped(b, k, n, "right");
    const OpKind op = k.empty() ? OpKind::Mul : OpKind::MatMul;
    const Id product = writer_.make(op, {left, right}, "product");
    const Labels labels = batch + m + n;
    return {writer_.reshape(product, shape_of(labels), "y"), labels};
  }
};
}  // namespace

Result<Outputs> einsum(PrimitiveWriter& writer) {
  return Einsum(writer).run();
}
}  // namespace warploom::graph::rewrites
