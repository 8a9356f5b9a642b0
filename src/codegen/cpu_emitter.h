// The writer of CPU kernels, in five files: cpu.cpp (the function and control flow), cpu_fusion.cpp (statements that share a loop),
// cpu_copy.cpp (copies), cpu_compute.cpp (everything on registers but what is in
// cpu_scan.cpp). Private to this room.
#pragma once
#include <algorithm>
#include <set>
#include <span>
#include "codegen/cpu_layout.h"
#include "codegen/cpu_liveness.h"
#include "codegen/launch_list.h"
#include "codegen/terms.h"
#include "codegen/writer.h"
#include "synth/sites.h"
namespace warploom::codegen {
using synth::IndexRanges;
using synth::Range;

class CpuEmitter {
 public:
  CpuEmitter(const tile::Program& program, const target::Capabilities& capabilities, CpuLayouts layouts);
  Result<Kernel> emit();

 private:
  // cpu.cpp
  Status body(const tile::Body& statements);
  Status statement(const tile::Statement& statement);
  Status visit(const tile::For& loop);
  Status visit(const tile::If& branch);
  template <class Other>
  Status visit(const Other&);  // what a CPU has no counterpart for
  tl::unexpected<Error> unsupported(const std::string& message, const std::string& expected, const std::string& found) const;

  // cpu_fusion.cpp
  struct Run {  // statements of a body that share a loop
    std::size_t begin = 0, end = 0;
    std::int64_t extent = 0;                 // elements; 0: one statement with a loop of its own
    std::set<tile::TensorId> reduced;        // single elements, known behind the loop only
    std::set<tile::TensorId> read, written;  // shared and global tensors
  };
  std::int64_t flat_extent(tile::TensorId id) const;
  bool joins(const tile::Statement& statement, Run& run) const;
  std::vector<Run> runs_of(const tile::Body& body) const;
  bool memory_serves(const tile::Copy& copy, const tile::Body& body, std::span<const Run> later) const;
  bool walks(const tile::Tile& tile) const;
  void fused(const tile::Body& body, const Run& run, std::span<const Run> later);

  // cpu_copy.cpp
  struct Side;  // one tile of a copy
  Status visit(const tile::Copy& copy);
  Status gathered(tile::Copy copy);
  std::optional<Status> grouped(tile::Copy copy);
  Side side_of(const tile::Tile& tile, const std::vector<tile::Index>& outer) const;
  tile::Index address(tile::TensorId id, const std::vector<tile::Index>& at, bool panels_start) const;
  std::string pointer(const Side& side) const;
  std::string row_pointer(const tile::Tile& tile) const;
  std::vector<std::string> conditions(const Side& global, bool matrix_dims, bool other_dims) const;
  std::string box(const Side& global) const;
  void copy_matrix(const tile::Copy& copy, const Side& src, const Side& dst);
  bool load_tile(const tile::Copy& copy, const Side& src, const Side& dst);
  bool copy_rows(const tile::Copy& copy, const Side& src, const Side& dst);
  void copy_elements(const tile::Copy& copy, const Side& src, const Side& dst);

  // cpu_compute.cpp
  Status visit(const tile::Fill& fill);
  Status visit(const tile::Map& map);
  Status visit(const tile::Mma& mma);
  Status visit(const tile::Reduce& reduce);
  // cpu_scan.cpp
  Status visit(const tile::Scan& scan);
  Status visit(const tile::Rearrange& node);
  struct Loop {
    std::string variable;
    std::int64_t extent;
    std::size_t dim;
  };
  std::vector<Loop> open_loops(const std::vector<std::int64_t>& shape, std::size_t skip, std::size_t also_skip);
  std::string element(tile::TensorId id, const std::vector<Loop>& loops) const;
  std::string value_text(const tile::Value& value, const std::function<std::string(const tile::Value&)>& leaf,
                         std::map<std::string, std::string>& known, const std::string& stem);
  std::string local(const std::string& text, const std::string& stem, std::map<std::string, std::string>& known);
  void store(const std::string& to, const std::string& value, const std::string& v, std::int64_t count, bool padded);
  std::string rounded(Dtype dtype, const std::string& value) const;
  void mma_block(const tile::Mma& mma, std::int64_t m, std::int64_t vectors, const std::string& row, std::int64_t column);

  const tile::Tensor& tensor(tile::TensorId id) const { return program_.tensor(id); }
  const CpuLayout& layout(tile::TensorId id) const { return layouts_.of[static_cast<std::size_t>(id)]; }
  std::string fresh(const std::string& stem) { return stem + "_" + std::to_string(++fresh_); }
  const std::string& name(tile::TensorId id) const {
    named_[static_cast<std::size_t>(id)] = true;
    return tensor(id).name;
  }

  const tile::Program& program_;
  const target::Capabilities& capabilities_;
  CpuLayouts layouts_;
  IndexRanges ranges_;
  Liveness liveness_;
  mutable std::vector<bool> named_;  // those that the text mentions: the others need no array
  struct Alias {                     // a register tensor that later loops of this body read from memory
    std::string pointer;
    bool prefetch;  // the first of them also asks for what later turns will read
  };
  std::map<tile::TensorId, Alias> aliases_;
  std::int64_t lanes_;
  const tile::Statement* at_ = nullptr;
  int fresh_ = 0;                   // numbers for loop variables and values
  std::vector<std::string> loops_;  // variables of the loops around, innermost last
  bool streams_ = false;
  Writer out_;
};

// The C++ type of a global tensor's elements, or empty where CPU kernels do not compute with the type.
std::string cpu_element_type(Dtype dtype);
bool is_narrow(Dtype dtype);           // 16-bit, or tf32: values are rounded as they are written
std::string float_text(double value);  // a literal of type float
inline std::string plus(const std::string& base, const std::string& offset) {
  return offset == "0" ? base : base + " + " + offset;
}

struct Reduction {
  const char* combine;     // of two vectors
  const char* horizontal;  // of the lanes of one, or of several
  double identity;
};
Reduction reduction_of(tile::ReduceOp op);
std::size_t vector_dim_of(const std::vector<std::int64_t>& shape);  // the last one of extent above 1: vectors run along it
}  // namespace warploom::codegen
