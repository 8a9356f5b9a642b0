// The writer of CPU kernels: cpu.cpp (the function and control flow), cpu_fusion.cpp
// (statements that share a loop), cpu_copy.cpp (copies), cpu_compute.cpp (everything on registers),
// cpu_windows.cpp (products of windows), cpu_dot.cpp (products of pairs); and what they ask before
// they write: cpu_layout.cpp.
// Private to this room.
//
// Shared and register tensors are arrays of floats, those of i32 and i64 of `long long`: whole
// numbers are computed and moved as such (cpu_integers.cpp), and turned into floats where floats
// are computed with.
#pragma once
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include "codegen/terms.h"

namespace warploom::codegen {
using synth::IndexRanges, synth::Range;

// Layouts on the CPU: where an element of a shared or register tensor lies, chosen from how the
// statements use the tensor.
//
// A tensor is a stack of matrices [rows, cols], its last two dimensions. Either the columns or the
// rows run fastest, and the fast dimension is cut into panels of `panel` elements:
//
//   columns fast:  (r, c) → (c / panel) · rows · panel + r · panel + c % panel
//
// One panel as wide as the tensor is plain row-major storage with a pitch; a panel of 48 columns is
// what an Mma with 48 columns reads with no stride at all. Rules: the second operand of an Mma has
// its n dimension fast, in panels of the Mma's width where every Mma reads whole panels; the first
// operand lies as the global tensor that fills it does, so that filling it is copying; all else is
// row-major. A pitch that would map successive rows to the same cache sets gets one vector more.
struct CpuLayout {
  int64_t rows = 1;
  int64_t cols = 1;
  int64_t matrices = 1;
  bool rows_fast = false;
  int64_t panel = 1;   // elements, of the fast dimension
  int64_t floats = 0;  // elements of all matrices, padding included
  int64_t offset = 0;  // shared tensors: floats from the start of the scratch memory

  int64_t fast() const { return rows_fast ? rows : cols; }

  int64_t slow() const { return rows_fast ? cols : rows; }

  size_t fast_dim(size_t rank) const { return rank - (rows_fast && rank > 1 ? 2 : 1); }

  bool one_panel() const { return panel >= fast(); }

  int64_t matrix_floats() const;
  // Of each dimension of a tensor of this shape, within one panel.
  std::vector<int64_t> strides(const std::vector<int64_t>& shape) const;
};

struct CpuLayouts {
  std::vector<CpuLayout> of;  // by tensor; of global tensors empty
  int64_t shared_floats = 0;
  int64_t register_floats = 0;
};

Result<CpuLayouts> choose_cpu_layouts(const Program& program,
                                      const target::Capabilities& capabilities);

// The tensors that a statement reads and those that it wholly overwrites; of its body, all of them
// when it has one. Writing a part of a tensor counts as both: what is not written stays as it was.
struct TensorUses {
  std::set<TensorId> reads;
  std::set<TensorId> writes;
};

TensorUses uses_of(const Program& program, const Statement& statement);

// The register tensors, by number, whose values are still wanted behind a statement: some statement
// that may run later reads them before it wholly overwrites them. Statements later in a loop's body
// are also earlier ones of its next turn, and a loop may not turn at all.
using Wanted = std::vector<bool>;
std::map<StatementId, Wanted> wanted_behind(const Program& program);

// Of copies past the caches that loops of one turn of a loop around make of the same memory, one
// after another: how many elements further on the next turn reads. The last of them asks for that
// meanwhile; the others, which stand here with 0, for nothing. Only what a cache of so many bytes
// holds beside all else.
//
//   for r: { for i: copy X[r, i*64 +64]    0       4096 columns
//            for i: copy X[r, i*64 +64] }  4096
std::map<StatementId, int64_t> next_turns_of(const Program& program, int64_t cache_bytes);

std::string whole_element(const std::string& pointer);
bool is_narrow(Dtype dtype);  // 16-bit, or tf32: values are rounded as they are written
std::string rounded(Dtype dtype, const std::string& value);

class CpuEmitter : Emitter {
 public:
  CpuEmitter(const Program& program, const Program& given, const target::Capabilities& capabilities,
             CpuLayouts layouts)
      : Emitter{program, given, capabilities}, layouts_(std::move(layouts)) {}

  Result<Kernel> emit();

 private:
  // cpu.cpp
  void note_buffer(TensorId id, Kernel& kernel, nlohmann::json& record) const;
  void refuse_type(TensorId id);
  void body(const Body& statements);
  void statement(const Statement& statement);
  void visit(const For& loop);
  void visit(const If& branch);
  template <class Other> void visit(const Other&);  // what a CPU has no counterpart for
  void unsupported(const std::string& message, const std::string& expected,
                   const std::string& found);

  // cpu_fusion.cpp
  struct Run {  // statements of a body that share a loop
    size_t begin = 0;
    size_t end = 0;
    // Of the register tensors that they walk, with extents of 1 dropped where one is left; empty:
    // one statement with a loop of its own.
    std::vector<int64_t> shape;
    TensorId walked = -1;  // one of these
    bool rows = false;     // some statement asks where a row ends, if there are several
                           // vectors come in order, or from the last one on
    bool scans = false;
    bool reverse = false;
    std::set<TensorId> reduced;  // known behind the loop only
    // Shared and global tensors; of those that are read where, if that is one place.
    std::map<TensorId, std::string> read;
    std::set<TensorId> written;
  };

  class FusedLoop;  // cpu_fused_loop.cpp
  class Joining;

  bool joins(const Statement& statement, Run& run) const;
  std::vector<Run> runs_of(const Body& body) const;
  bool memory_serves(const Copy& copy, const Body& body, std::span<const Run> later) const;
  bool walks(const Tile& tile) const;
  void fused(const Body& body, const Run& run, std::span<const Run> later);

  // cpu_copy.cpp
  // One tile of a copy as a matrix: of its dimensions above 1, which are two at most.
  struct Side {
    struct Line {
      int dim = -1;  // of the tensor; -1: there is none
      int64_t extent = 1;
      int64_t stride = 0;
    };

    const Tile* tile;
    bool global;
    Line row;
    Line col = {-1, 1, 1};
    bool strided = true;        // the strides hold over the whole tile
    bool whole_panels = false;  // of a buffer: the tile is all of its panels
    bool rows_fast = false;     // of a buffer: which of `row` and `col` its panels cut

    void exchange() {
      std::swap(row, col);
      rows_fast = !rows_fast;
    }
  };

  void visit(const Copy& copy);
  void move(const Copy& copy);
  void gathered(Copy copy);
  template <class F> void turns(const std::string& stem, int64_t count, const F& turn);
  bool guards(const Copy& copy) const;
  template <class F> void walk(Copy copy, const Meeting& met, const F& each);
  Side side_of(const Tile& tile) const;
  bool is_strided(
      const Tile& tile) const;  // a buffer's tile: one stride a dimension, across no panel's edge
  Index address(const Tile& tile) const;

  std::string pointer(const Tile& tile) const { return plus(name(tile.tensor), address(tile)); }

  std::string row_pointer(const Tile& tile) const;

  struct Row {
    std::string pointer;
    std::string box;     // of its elements those inside; "" where all of it lies inside
    std::string exists;  // when any do; "" where the box says it all
    int64_t step;
  };

  std::optional<Row> row_of(const Tile& tile) const;
  std::string conditions(const Tile& tile, const Side* besides = nullptr) const;
  std::string box_of(const Tile& tile, const Side::Line& row, const Side::Line& col) const;
  std::string box(const Side& global) const;
  void guarded(const Tile& global, const std::string& whole, const std::string& part);
  bool copy_rows(const Copy& copy, const Side& src, const Side& dst);
  bool load_tile(const Copy& copy, const Side& src, const Side& dst);
  bool is_one_run(const Tile& tile) const;
  bool is_whole_matrix(const Tile& tile, const Side& side) const;
  bool copied_transposed(const Statement& first, const Statement& second);
  void load_strided_rows(const Copy& copy, const Side& src, const Side& dst);
  void copy_elements(const Copy& copy, bool rows_last);
  void copy_whole_element(const Copy& copy, const std::string& inside, bool reads);

  struct Loop {
    std::string variable;
    int64_t extent;
    size_t dim;
  };

  // cpu_integers.cpp
  void whole_numbers(const Map& map);
  void whole_numbers(const Fill& fill);
  template <class Node> void whole_numbers_along(const Node& node);
  std::string whole_text(const Value& value, const Map& map, const std::vector<Loop>& loops);
  std::string stored_whole(TensorId id, const std::string& value) const;

  // cpu_compute.cpp
  void visit(const Map& map);
  void visit(const Fill& fill);
  void visit(const Mma& mma);
  std::array<int64_t, 2> matrix_strides(const Tile& tile) const;
  std::string hinders(const Tile& tile, int64_t column_stride) const;
  // When a statement sets a sum to 0 with which the product behind it begins; nothing: it does not.
  std::optional<std::string> begins_product(const Body& body, size_t place) const;

  // cpu_dot.cpp
  int64_t group_of(const Tile& tile) const;
  void multiply_pairs(const Mma& mma);
  bool goes_to_tiles(const std::vector<int64_t>& sums, Dtype dtype, int64_t terms) const;
  bool store_in_pairs(const Copy& copy);

  // cpu_windows.cpp
  int64_t panel_of_weights(const Mma& mma, int64_t columns) const;
  void multiply_windows(const Mma& mma);
  bool store_transposed(const Copy& copy, const Side& src, const Side& dst);

  void visit(const Reduce& reduce);
  void visit(const tile::Scan& scan);
  template <class Node> void fold(const Node& node);
  void visit(const ConvertLayout& node);

  std::vector<Loop> open_loops(const std::vector<int64_t>& shape, size_t skip, size_t also_skip);
  std::string element(TensorId id, const std::vector<Loop>& loops) const;
  using LeafText = std::function<std::string(const Value&)>;
  std::string value_text(const Value& value, const LeafText& leaf, const std::string& stem);

  // A loop over an axis, from the last element on where `reverse`.
  Writer::Block turns_along(const std::string& variable, int64_t count, bool reverse) {
    if (reverse) return out_.block("for (long {0} = {1}; {0}-- > 0;) {{", variable, count);
    return out_.block("for (long {0} = 0; {0} < {1}; ++{0}) {{", variable, count);
  }

  std::string local(const std::string& text, const std::string& stem);
  void store(const std::string& to, const std::string& value, const std::string& v, int64_t count,
             bool padded);

  const CpuLayout& layout(TensorId id) const { return layouts_.of[id]; }

  std::vector<int64_t> strides_of(TensorId id) const {
    const Tensor& t = tensor(id);
    return t.scope == Scope::global ? t.strides : layout(id).strides(t.shape);
  }

  std::string fresh(const std::string& stem) { return stem + "_" + std::to_string(++fresh_); }

  const std::string& name(TensorId id) const {
    named_[id] = true;
    return tensor(id).name;
  }

  CpuLayouts layouts_;
  IndexRanges ranges_ = IndexRanges(program_);
  std::map<StatementId, Wanted> wanted_ = wanted_behind(program_);
  std::map<StatementId, int64_t> next_turns_ = next_turns_of(program_, capabilities_.shared_bytes);
  mutable std::vector<bool> named_ = std::vector<bool>(
      program_.tensors.size());  // those that the text mentions: the others need no array

  struct Alias {  // a register tensor that later loops of this body read from memory
    std::string pointer;
    bool prefetch;  // the first of them also asks for what later turns will read
    int64_t jump;   // see FusedLoop::jump()
    bool streaming;
  };

  std::map<TensorId, Alias> aliases_;
  std::map<std::string, std::string>
      known_;  // local vectors of the loop being written, by their text
  int64_t lanes_ = capabilities_.lanes();
  int fresh_ = 0;  // numbers for loop variables and values

  struct Around {
    std::string variable;
    Index begin;
    int64_t step;
  };

  std::vector<Around> loops_;  // around, innermost last
  bool streams_ = false;
  std::string begins_ = "false";  // when the next product begins its sum
};

// Vectors of columns that a product of windows keeps in registers at once: of each row of the
// second operand, which lies in panels as wide.
inline constexpr int64_t kWindowVectors = 2;

size_t vector_dim_of(
    const std::vector<int64_t>& shape);  // the last one of extent above 1: vectors run along it
}  // namespace warploom::codegen
