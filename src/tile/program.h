// Tile programs: what one thread block does, in tiles. No layouts, no threads, no barriers.
//
// A program has tensors in three scopes. Global tensors are the kernel's parameters, with strides;
// shared tensors belong to the block; register tensors are spread over the threads of the role that
// uses them, in a way that synthesis decides. Statements move and compute whole tiles. A Tile names
// a box of a tensor: an offset (index expressions) and an extent for each of its dimensions.
// Elements of two tiles pair up in row-major order: dimensions of extent 1 do not count, and
// several of a global tile may meet one of the other (images, rows and columns of pixels the rows
// of a matrix). A global tile may take every so many-th element along a dimension, and along one it
// may be gathered: the coordinates are then read from a tensor of integers.
//
// Meaning (the interpreter in interpret.h is its definition):
//  * Blocks are independent, but for two kinds: the blocks of one cluster, which meet in
//    ClusterReduce, and those of a cooperative program, which all run at the same time and meet by
//    Signal and Wait.
//  * Statements run in order. A load of a global element outside its tensor gives the copy's fill
//    value; a store to one is dropped.
//    Shared and register tiles must lie inside their tensors.
//  * Arithmetic on values is fp32 (Map, Reduce). Mma multiplies exactly and accumulates in the type
//    of the accumulator. A store to a narrower type rounds to nearest even.
//    Reading an element that was never written is an error.
//  * A Map that says so, and a Reduce or Scan from a tensor of i32 or i64 to another, compute with
//    whole numbers of 64 bits that wrap; a Copy between integers loses nothing but what wraps.
//  * A Pipeline is a circular buffer of stages, each a set of shared tensors. Produce fills the
//    next stage, Consume reads the oldest one and releases it.
//    Inside Produce and Consume the pipeline's tensors are those of the current stage. The two may
//    stand in one thread of control (a software pipeline) or in different Roles.
//  * Roles run at the same time and meet only through pipelines: a producer never reads what a
//    consumer writes.
//
// Worked example: one 128×256 tile of C = A·B with B stored [K, N], three stages, a producer and
// two consumer warpgroups:
//
//   program gemm grid(32, 16)
//   global A bf16 [4096, 4096]; global B bf16 [4096, 4096]; global C bf16 [4096, 4096]
//   pipeline ab stages 3: shared a bf16 [128, 64], shared b bf16 [64, 256]
//   role producer warps 4 registers 40:
//     for k in 0 .. 64: produce ab: copy A[block_x*128 +128, k*64 +64] -> a;  copy B[k*64 +64,
//     block_y*256 +256] -> b
//   role consumer warps 8 registers 232:
//     register acc f32 [128, 256]; fill acc 0
//     for k in 0 .. 64: consume ab lag 1: mma acc += a * b
//     copy acc -> out; copy out -> C[...]
//
// Programs are values; builders (build.h) make them, verify.h checks them, print.h and parse.h turn
// them into text and back.
#pragma once
#include <array>
#include <cmath>
#include <concepts>
#include <optional>
#include <variant>
#include <vector>
#include "base/dtype.h"
#include "base/value_op.h"
#include "tile/index.h"

namespace warploom::tile {
using TensorId = int;
using PipelineId = int;

// A statement's identity within its program. It says nothing of the statement's place, and a copy
// of the program keeps it: what is known of a statement (synth::Solution) holds for the copy too.
using StatementId = int;
inline constexpr StatementId kNoStatement = -1;

enum class Scope : uint8_t { global, shared, reg };

struct Tensor {
  std::string name;
  Dtype dtype = Dtype::f32;
  Scope scope = Scope::global;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  // of global tensors and views, in elements; dense row-major
                                 // when the builder is given none
  bool writable = false;         // global only: an output of the kernel
  PipelineId pipeline = -1;      // shared only: of whose stages it is a part
  bool zeroed = false;           // an output that holds zeros when the program begins
  // An input whose elements' order in memory is free: synthesis chooses the order, and the owner of
  // the tensor lays its elements out so before the launch.
  bool prepacked = false;
  // An overlapping strided view of a shared tensor (torch.as_strided), which is row-major: an
  // element is the one at from + Σ coordinate · stride. Views are only read, into registers or as
  // the first operand of an Mma.
  TensorId as_strided = -1;
  int from = 0;
};

struct Tile {
  TensorId tensor = -1;
  std::vector<Index> offset;
  std::vector<int64_t> extent;  // one entry a dimension of the tensor
  // Gathered along lookup_dim: element e has the coordinate that `lookup`, a global tensor of
  // integers, holds at offset + e, below 0 from the end. Outside either tensor is outside.
  TensorId lookup = -1;
  int lookup_dim = -1;
  std::vector<int64_t> step =
      {};  // of a global tile, one a dimension: element e has coordinate offset + step·e; empty: 1

  bool gathered_along(size_t dim) const {
    return lookup >= 0 && lookup_dim == static_cast<int>(dim);
  }

  int64_t step_along(size_t dim) const { return step.empty() ? 1 : step[dim]; }

  // How many coordinates lie between the first and the last element along a dimension, both
  // counted.
  int64_t reach(size_t dim) const { return (extent[dim] - 1) * step_along(dim) + 1; }
};

// A value computed from elements of register tensors, point by point. Tensors of equal rank; extent
// 1 broadcasts.
struct Value {
  enum class Kind : uint8_t { constant, tensor, coordinate, op } kind = Kind::constant;
  double constant = 0;
  TensorId tensor = -1;
  int axis = 0;     // coordinate: the element's own along this axis of the destination,
  Index shift = 0;  // plus this
  ValueOp op = ValueOp::add;
  std::vector<Value> operands;
};

enum class ReduceOp : uint8_t { sum, max, min };

struct Reduction {
  std::string_view name;
  ValueOp combine;  // of two
  double identity;  // makes no difference
};

inline constexpr std::array<Reduction, 3> kReductions = {
    {{"sum", ValueOp::add, 0},
     {"max", ValueOp::max, -HUGE_VAL},
     {"min", ValueOp::min, HUGE_VAL}}};  // in the order of ReduceOp

constexpr const Reduction& reduction_of(ReduceOp op) {
  return kReductions[static_cast<size_t>(op)];
}

struct Statement;
using Body = std::vector<Statement>;

// dst ← src, between any two scopes. Registers to registers is a change of layout and type.
struct Copy {
  Tile src;
  Tile dst;
  double fill = 0;         // what elements outside a global source count as
  bool streaming = false;  // global side: used once, keep it out of the caches
  // Dimensions of the cluster ("x", "y", "xy") along which all blocks produce this same tile: one
  // fetch may serve them all.
  std::string multicast;
  std::optional<Index> peer;  // src is the shared tile of the block of this rank in the cluster
  std::optional<ReduceOp>
      combine;  // a global dst ← op(dst, src), indivisible and in any order among blocks
};

struct Fill {
  TensorId dst = -1;  // a register tensor
  double value = 0;
};

// dst ← value, elementwise; dst may be one of its operands. `integers`: on whole numbers of 64 bits
// that wrap (base/integers.h), of tensors of integers and by operations that have a meaning there;
// dst takes what wrapping to its type leaves.
struct Map {
  TensorId dst = -1;
  Value value;
  bool integers = false;
};

// acc[M,N] += a[M,K]·b[K,N]; transpose_a: a is [K,M]; transpose_b: b is [N,K]. acc is a register
// tensor; a and b are register or shared tiles, on a CPU global ones as well, of which elements
// outside count as 0. A global b may have its rows in groups, [K/g, g, N]: k is both dimensions
// together, and a memory whose groups are neighbours, strides (g·pitch, 1, g), is what
// instructions take that multiply g terms at once. Which instruction, and what that asks of the
// operands' layouts, is synthesis's choice.
struct Mma {
  TensorId acc = -1;
  Tile a;
  Tile b;
  bool transpose_a = false;
  bool transpose_b = false;
};

// dst ← op over `axis` of src, keeping the axis with extent 1.
struct Reduce {
  TensorId dst = -1;
  TensorId src = -1;
  int axis = 0;
  ReduceOp op = ReduceOp::sum;
};

// dst[.., i, ..] ← op over elements 0 to i of src along `axis`, or in reverse over those from i to
// the last.
struct Scan {
  TensorId dst = -1;
  TensorId src = -1;
  int axis = 0;
  ReduceOp op = ReduceOp::sum;
  bool reverse = false;
};

// dst ← src, or src transposed, in another layout: what the statements of one tensor ask of its
// layout does not bind the other's.
struct ConvertLayout {
  TensorId dst = -1;
  TensorId src = -1;
  bool transpose = false;
};

// dst ← the bits of src as elements of dst's type; the last extent is scaled. Both are integers of
// at most a byte.
struct Bitcast {
  TensorId dst = -1;
  TensorId src = -1;
};

// dst ← op of dst over all blocks of the cluster; every block gets the result.
struct ClusterReduce {
  TensorId dst = -1;
  ReduceOp op = ReduceOp::sum;
};

// flag ← flag + by, once what the role (without roles: the block) has written before can be seen by
// whoever waits for it.
struct Signal {
  Tile flag;  // one element of a global i32 tensor
  Index by;
};

// Goes on once flag ≥ least. Only in cooperative programs, whose blocks all run at the same time.
struct Wait {
  Tile flag;
  Index least;
};

// Every block of the cluster gets here before any goes on; then each sees what the others have
// written to their shared tensors.
struct ClusterSync {};

struct For {
  std::string variable;
  Index begin;
  Index end;
  Index step = 1;
  bool unroll = false;
  Body body;
};

struct If {  // body runs where left < right
  Index left;
  Index right;
  Body body;
};

struct Produce {
  PipelineId pipeline = -1;
  Body body;  // copies from global into the pipeline's tensors
};

struct Consume {
  PipelineId pipeline = -1;
  int mma_in_flight = 0;  // the matrix instructions, or the threads' reads, of so many stages may
                          // be in flight when the next stage is taken
  Body body;
};

struct Role {
  std::string name;
  int warps = 4;
  int registers = 0;  // a thread's budget; 0: the kernel's default
  Body body;
};

struct Roles {
  std::vector<Role> roles;
};

struct Location {  // where the builder call or the text stands
  std::string file;
  int line = 0;
};

struct Statement {
  std::variant<Copy, Fill, Map, Mma, Reduce, Scan, ConvertLayout, Bitcast, ClusterReduce, For, If,
               Produce, Consume, Roles, Signal, Wait, ClusterSync>
      node;
  Location location;
  StatementId id = kNoStatement;  // given by number_statements()

  template <class Node> const Node* as() const {  // null where it is another
    return std::get_if<Node>(&node);
  }

  template <class... Nodes> bool is() const { return (std::holds_alternative<Nodes>(node) || ...); }

  decltype(auto) visit(const auto& f) const { return std::visit(f, node); }
};

struct Pipeline {
  std::string name;
  int stages = 2;
  std::vector<TensorId> tensors;
};

struct Program {
  std::string name;
  std::vector<int64_t> grid = {1, 1, 1};     // blocks
  std::vector<int64_t> cluster = {1, 1, 1};  // blocks a cluster
  int warps = 4;                             // of 32 threads; with Roles, the sum of theirs
  bool cooperative = false;                  // all blocks run at the same time
  std::vector<Tensor> tensors;
  std::vector<Pipeline> pipelines;
  Body body;

  const Tensor& tensor(TensorId id) const { return tensors[id]; }

  const Pipeline& pipeline(PipelineId id) const { return pipelines[id]; }
};

// Gives each statement that has no id one that no other has, in the order of the text; the others
// keep theirs. The builder and the parser call it on what they have made; who adds statements to a
// finished program calls it again.
void number_statements(Program& program);

// The statement of that id; null where the program has none.
const Statement* statement_with(const Program& program, StatementId id);

// Says to the tensors of every pipeline, and to their windows, whose they are.
void own_stages(Program& program);

// Integers that a float does not hold: arithmetic on them is that of whole numbers.
constexpr bool is_wide_integer(Dtype dtype) {
  using enum Dtype;
  return dtype == i32 || dtype == i64 || dtype == i16 || dtype == u64 || dtype == u32 ||
         dtype == u16;
}

// Whether a statement computes with whole numbers, or moves them as they are.
bool in_integers(const Program& program, const Statement& statement);

// A tile that covers a whole tensor; its extents with those of 1 dropped (a 1-element tile keeps
// one).
Tile whole(const Program& program, TensorId id);
std::string place_of(const Program& program);          // "program 'gemm'"
std::string place_of(const Statement& statement);      // "gemm.cpp:42", "" where nobody knows
std::vector<TensorId> tensors_of(const Value& value);  // those that it names, with repeats

// How a statement, without those of its body, uses a tensor; `tile`: which part of it, where it
// names one, or what it gathers.
struct TensorUse {
  TensorId tensor = -1;
  bool read = false;
  bool written = false;
  const Tile* tile = nullptr;
  const Tile* gathers = nullptr;
};

std::vector<TensorUse> uses_of(const Statement& statement);
const Roles* roles_of(const Program& program);  // null where there are none
void count_warps(Program& program);             // where there are roles: the sum of theirs

// One of these nodes, const or not, or a reference to one.
template <class T, class... Nodes>
concept Of = (std::same_as<std::remove_cvref_t<T>, Nodes> || ...);

// What a statement holds: a loop's body, a branch's, a stage's, those of roles. f(body) for each in
// order; mostly there is none.
void for_bodies(const Statement& statement, const auto& f) {
  statement.visit([&](const auto& node) {
    if constexpr (requires { node.body; }) f(node.body);
    if constexpr (requires { node.roles; })
      for (const Role& role : node.roles)
        f(role.body);
  });
}

// A statement, then all inside it, in order.
void for_statements(const Statement& statement, const auto& f) {
  f(statement);
  for_bodies(statement, [&](const Body& body) {
    for (const Statement& inner : body)
      for_statements(inner, f);
  });
}

// Arithmetic on shapes: matrix_extent({1, 128, 64}) → {128, 64}, dense_strides({2, 3, 4}) → {12, 4,
// 1}.

// The rows and columns that an Mma sees in a tile: extents of 1 are dropped, from the front, until
// two are left. The result has two entries exactly where the tile is a matrix.
std::vector<int64_t> matrix_extent(std::vector<int64_t> extent);

// The same of an Mma's second operand, whose rows may come in groups: all dimensions but the last
// are k. {1, 8, 2, 48} → {16, 48}
std::vector<int64_t> grouped_extent(std::vector<int64_t> extent);

// The same in a tile of windows: the first dimensions are rows until they make `rows` of them, the
// others k. {2, 7, 16, 3, 3} with 14 rows → {14, 144}; one entry where no dimensions make so many.
std::vector<int64_t> windows_extent(const std::vector<int64_t>& extent, int64_t rows);

// The dimensions of extent above 1, in order.
std::vector<size_t> wide_dims(const std::vector<int64_t>& extent);

// Which dimensions of two tiles meet in a copy: one with one, or one with several neighbours of the
// same product, in order; nothing where the shapes do not fit.   {1, 16, 8, 4} and {16, 32}  →  {1}
// with {0}, {2, 3} with {1}
struct Meeting {
  std::vector<size_t> a;
  std::vector<size_t> b;
};

std::optional<std::vector<Meeting>> meetings(const std::vector<int64_t>& a,
                                             const std::vector<int64_t>& b);

// The number of elements; 0 where an extent is below 1, -1 where the product overflows.
int64_t element_count(const std::vector<int64_t>& extent);

std::vector<int64_t> dense_strides(const std::vector<int64_t>& shape);  // row-major, in elements
// Elements from the first to the last that a tensor with strides names.
int64_t span_of(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides);
int64_t cluster_size(const Program& program);             // blocks a cluster
std::string text_of(const std::vector<int64_t>& extent);  // "[64, 32]"
}  // namespace warploom::tile
