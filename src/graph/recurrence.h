// What writes the primitives of RNN, GRU and LSTM. Private to the room.
//
//   composite_recurrences.cpp  what is the same for all: the product of all steps, the steps in
//   turn recurrent_cells.cpp        what one step does, and its activations
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "graph/rules.h"

namespace warploom::graph {
// The places of inputs.
constexpr size_t kX = 0;
constexpr size_t kW = 1;
constexpr size_t kR = 2;
constexpr size_t kBias = 3;
constexpr size_t kLengths = 4;
constexpr size_t kState = 5;
constexpr size_t kCell = 6;
constexpr size_t kPeepholes = 7;

// An activation by its name in ONNX, with the defaults of its parameters.
struct ActivationRow {
  std::string_view name;
  OpKind op;
  std::optional<double> alpha;
  std::optional<double> beta;
};

// An activation with its parameters.
struct Activation {
  const ActivationRow* row = nullptr;
  double alpha = 0;
  double beta = 0;
};

// What one direction has of the weights.
struct Side {
  bool reverse = false;
  int64_t number = 0;
  std::string prefix;
  Id recurrent = kAbsent;          // Rᵀ [H,G·H]
  Id late_bias = kAbsent;          // of GRU, [H], where it is added before the reset
  std::vector<Id> peepholes = {};  // [H] each, of i, o and f
  std::span<const Activation> activations = {};
};

// What one step leaves to the next.
struct State {
  Id h = kAbsent;  // kAbsent: zeros
  Id c = kAbsent;
};

class Recurrence;

// What tells RNN, GRU and LSTM from one another.
struct CellKind {
  int64_t gates;
  std::vector<std::string_view> activations;
  State (Recurrence::*step)(const Side& side, Id a, const State& before, const std::string& at);
};

// A recurrence while it is written.
class Recurrence {
 public:
  Recurrence(PrimitiveWriter& writer, CellKind kind)
      : writer_(writer), kind_(std::move(kind)), type_(writer.in(kX).dtype) {}

  Result<Outputs> run();

  State rnn_step(const Side& side, Id a, const State& before, const std::string& at);
  State gru_step(const Side& side, Id a, const State& before, const std::string& at);
  State lstm_step(const Side& side, Id a, const State& before, const std::string& at);

 private:
  Status check();
  Status check_input(size_t i, std::string_view what, const Shape& wanted);
  Status read_activations();
  void read_lengths();
  Id sum_of_biases();
  Id projected();
  Side side_of(int64_t number);
  State initial(const Side& side);
  State kept(Id mask, const State& after, const State& before, const std::string& at);
  State unroll(const Side& side, std::vector<Id>& made);
  Id stacked(std::vector<Id> parts, const std::string& what);
  Id all_states(const std::vector<Id>& parts);
  Id last_states(const std::vector<Id>& parts, std::string_view what);

  // Entries [from, to) along an axis.
  Id part(Id x, int64_t axis, int64_t from, int64_t to, const std::string& what);
  // Gate g of [B,G·H].
  Id gate(Id a, int64_t g, const std::string& what);
  Id activated(const Activation& by, Id x, const std::string& what);

  Id wide(Id x, const std::string& what) { return writer_.cast(x, wide_type(), what); }

  Dtype wide_type() const { return bits_of(type_) == 16 ? Dtype::f32 : type_; }

  Id known_list(int64_t value);
  // A number of the type of the gates.
  Id number(double value);

  bool batch_first() const { return writer_.node.integer("layout") != 0; }

  PrimitiveWriter& writer_;
  CellKind kind_;
  Dtype type_;
  int64_t steps_ = 0;
  int64_t batch_ = 0;
  int64_t features_ = 0;
  int64_t hidden_ = 0;
  int64_t directions_ = 1;
  bool resets_late_ = false;  // of GRU: the reset is applied to the product
  Id projected_ = kAbsent;    // [D·T,B,G·H]
  Id lengths_ = kAbsent;      // [B,1]; kAbsent: all are whole
  std::vector<Activation> activations_;
  std::map<int64_t, Id> lists_;
  std::map<double, Id> numbers_;
};

}  // namespace warploom::graph
