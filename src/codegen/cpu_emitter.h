// The writer of CPU kernels, in three files: cpu.cpp (the function and control flow), cpu_copy.cpp (copies), cpu_compute.cpp
// (everything on registers). Private to this room.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "codegen/cpu_layout.h"
#include "codegen/cpu_ranges.h"
#include "codegen/launch_list.h"
#include "codegen/writer.h"
#include "target/capabilities.h"
#include "tile/program.h"

namespace warploom::codegen {

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
  tl::unexpected<Error> unsupported(const std::string& message, const std::string& expected,
                                    const std::string& found) const;

  // cpu_copy.cpp
  struct Side;  // one tile of a copy
  Status visit(const tile::Copy& copy);
  Side side_of(const tile::Tile& tile, const std::vector<tile::Index>& outer) const;
  tile::Index address(tile::TensorId id, const std::vector<tile::Index>& at, bool panels_start) const;
  std::string pointer(const Side& side) const;
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
  struct Loop {
    std::string variable;
    std::int64_t extent;
    std::size_t dim;
  };
  std::vector<Loop> open_loops(const std::vector<std::int64_t>& shape, std::size_t skip, std::size_t also_skip);
  std::string element(tile::TensorId id, const std::vector<Loop>& loops) const;
  std::vector<std::int64_t> strides_of(tile::TensorId id) const;  // of a register tensor
  std::string value_text(const tile::Value& value, std::size_t vector_dim, const std::vector<Loop>& loops,
                         const std::string& vector, std::map<std::string, std::string>& known);
  std::string rounded(Dtype dtype, const std::string& value) const;
  void mma_block(const tile::Mma& mma, std::int64_t m, std::int64_t vectors, const std::string& row,
                 std::int64_t column);

  const tile::Tensor& tensor(tile::TensorId id) const { return program_.tensor(id); }
  const CpuLayout& layout(tile::TensorId id) const { return layouts_.of[static_cast<std::size_t>(id)]; }
  std::string fresh(const char* stem) { return stem + std::string("_") + std::to_string(++fresh_); }
  const std::string& name(tile::TensorId id) const { return names_[static_cast<std::size_t>(id)]; }

  const tile::Program& program_;
  const target::Capabilities& capabilities_;
  CpuLayouts layouts_;
  IndexRanges ranges_;
  std::vector<std::string> names_;  // C identifiers of the tensors
  std::int64_t lanes_;
  tile::Location place_;
  int fresh_ = 0;                   // numbers for loop variables and values
  std::vector<std::string> loops_;  // variables of the loops around, innermost last
  bool streams_ = false;
  Writer out_;
};

// The C++ type of a global tensor's elements, or empty where CPU kernels do not compute with the type.
std::string cpu_element_type(Dtype dtype);
bool is_narrow(Dtype dtype);           // 16-bit, or tf32: values are rounded as they are written
std::string float_text(double value);  // a literal of type float

}  // namespace warploom::codegen
