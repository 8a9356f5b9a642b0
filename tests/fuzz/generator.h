// What the kinds of random programs are made of: random choices, boxes of global tensors, trees of
// values.
//
// A box is made for the variables around it (block indices, loops): its offsets name some of them,
// for an output all, so that no two blocks and no two turns of a loop write the same element. The
// tensor is then cut or widened, so that the last box, or the first one, lies partly or wholly
// outside.
#pragma once
#include <functional>
#include <stdexcept>
#include "base/random.h"
#include "program.h"
#include "tile/build.h"

namespace warploom::fuzz {
using tile::Index;
using tile::TensorId;
using Shape = std::vector<int64_t>;

struct Variable {
  Index index;
  int64_t count = 1;  // values 0, scale, 2·scale …
  int64_t scale = 1;
};

class Generator {
 public:
  Generator(uint64_t seed, std::string target, Data data)
      : random_(seed, "program"),
        packs_(seed, "packed"),
        b_("fuzz_" + std::to_string(seed)),
        target_(std::move(target)),
        data_(data) {}

  // The kinds; each builds a whole program.
  void elementwise();  // elementwise.cpp
  void moves();        // moves.cpp
  void matmul();       // matmul.cpp
  void ring();         // matmul.cpp

  tile::Program finish() { return b_.finish(); }

 private:
  // Choices
  bool chance(double p) { return random_.uniform() < p; }

  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_.below(static_cast<uint64_t>(high - low + 1)));
  }

  template <class T> T pick(std::initializer_list<T> list) {
    return list.begin()[random_.below(list.size())];
  }

  template <class T> const T& pick(const std::vector<T>& list) {
    return list[random_.below(list.size())];
  }

  std::string fresh(const std::string& stem);
  Dtype any_dtype();
  Index at_same(const Variable& v);  // the variable's number of turns, spelled in one of many ways

  bool on_gpu() const { return target_ != "cpu"; }

  // The grid, with its variables in vars_; clusters where the target has them.
  void make_grid(bool clusters);

  int64_t cluster_size() const { return cluster_; }

  struct BoxOptions {
    bool output = false;
    bool aligned = false;     // for TMA: rows and starts at multiples of 16 bytes, fill zero
    bool transposed = false;  // the last but one dimension is contiguous
    bool dense = false;       // nothing but a dense tensor in its own order
    bool packs = false;       // goes to registers: the tensor may be packed
  };

  tile::Tile box(const Shape& extent, Dtype dtype, const BoxOptions& options);
  tile::Tile packed_box(const Shape& extent, Dtype dtype);
  double fill_for(Dtype dtype);

  void load(const tile::Tile& from, const tile::Tile& to) {
    b_.copy(from, to, fill_for(b_.dtype_of(from.tensor)), chance(0.1));
  }

  // A loop whose variable stands in vars_ while its body is made.
  void loop(int64_t turns, const std::function<void(const Variable&)>& body);

  // elementwise.cpp: register tensors and the statements on them
  struct Register {
    TensorId id;
    Shape shape;
    Dtype dtype;
  };

  TensorId reg(const Shape& shape, Dtype dtype);
  tile::Value value(const Shape& shape, int depth);
  const Register* any_register(const std::function<bool(const Register&)>& fits);
  void add_load(const Shape& shape);
  void add_map();
  void add_reduce();
  void add_scan();
  void add_rearrange(const Register& from);
  void add_cast();
  void add_fill();
  void add_store(const Register& from);
  void add_through_shared(const Register& from);
  void add_block(bool loops, int depth);
  void add_statements(int count, int depth);

  // moves.cpp: data from one scope to the next
  struct Move;
  Dtype moved_dtype();
  Shape moved_shape();
  Shape finer(const Shape& shape);
  tile::Tile place_of(const Move& move, tile::Scope scope);
  void load_in_halves(const tile::Tile& whole, const tile::Tile& here);
  void move_chain();

  // Parts of box()
  struct BoxParts;
  void add_dimension(BoxParts& parts, int64_t extent, const std::vector<Variable>& moved,
                     bool contiguous, const BoxOptions& o);
  Shape box_strides(const Shape& shape, bool swapped, size_t rank, const BoxOptions& o,
                    int64_t vector);

  // matmul.cpp
  struct Product;
  void choose_types(Product& p);
  void warpgroup_product(Product& p, int64_t atom);
  void warp_product(Product& p, int64_t atom);
  struct Consumer;
  void consumer_role(const Product& p, const Consumer& of,
                     const std::function<void(const std::function<void()>&)>& each_tile);
  void epilogue(TensorId acc, const Shape& shape, Dtype dtype);
  void load_operands(const Product& p, const Index& step);
  void multiply(const Product& p);
  void product_in_roles(Product& p);
  void product_in_one_thread(Product& p);
  void product_in_threads(Product& p, bool ring);

  // of what is packed: a stream of its own
  Random random_;
  Random packs_;
  tile::Builder b_;
  std::string target_;
  Data data_;
  int fresh_ = 0;
  int warps_ = 4;
  std::vector<std::string> odd_names_ = {
      "t",     "i",    "i0",    "i1",   "w",     "m",      "n",   "p",   "kk",  "smem",   "moved",
      "other", "peer", "stage", "done", "total", "a_desc", "i0_", "x_1", "v_1", "t_div4", "task"};
  int64_t cluster_ = 1;
  std::vector<Variable> vars_;  // around the statement being made
  std::vector<Register> registers_;
  bool persistent_ = false;  // a product inside a loop
  bool divergent_ = false;   // inside something that blocks of a cluster may decide differently
};
}  // namespace warploom::fuzz
