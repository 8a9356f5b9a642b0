// The state of CUDA emission, shared by the files that each write one kind of statement
// (cuda_*.cpp).
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "codegen/cuda_analysis.h"
#include "codegen/emit.h"
#include "codegen/launch_list.h"
#include "codegen/synchronization.h"
#include "codegen/terms.h"
#include "layout/memory_layout.h"
#include "layout/tv_layout.h"
#include "synth/sites.h"
#include "synth/synthesize.h"
#include "target/capabilities.h"
#include "target/instruction.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::codegen {
using layout::ThreadDigit, layout::TvLayout, synth::InstructionChoice, synth::Sides,
    target::Instruction, target::Method;

// A nest of unrolled loops over the value modes of a register tensor.
struct ValueLoop {
  Index variable;
  int64_t extent;
  layout::Coord step;    // per tensor dimension
  int64_t value_stride;  // in the thread's array
};

// A constant of the type in emitted CUDA C++; of the types below a byte, a byte of equal elements.
std::string literal(Dtype dtype, double value);

Index factor_in(const Tensor& t,
                const Index& index);  // of an offset: of 64 bits where the tensor is large

// The blocks of a cluster that one block shares with, itself among them.
struct Peers {
  unsigned ranks = 1;  // a bit each, of block 0
  std::string mask;    // of the block's own
  Index share = 0;     // the block's number among them

  int blocks() const { return std::popcount(ranks); }
};

Peers peers_along(const Program& program,
                  const std::string& dimensions);  // that a multicast reaches

constexpr int kBarrierBytes = 8;

// "a + b", "wl::max(a, b)"
std::string combined(ReduceOp op, const std::string& a, const std::string& b);

// Whether the lanes along the axis are in steps of powers of two.
bool lanes_pair_up(const TvLayout& layout, size_t axis);

class CudaEmitter : Emitter {
 public:
  CudaEmitter(const Program& program, const Program& given,
              const target::Capabilities& capabilities, const synth::Solution& solution)
      : Emitter{program, given, capabilities},
        solution_(solution),
        analysis_(program, solution),
        sync_(analysis_) {}

  Result<Kernel> run();

  // For tests: how often a statement's text was written.
  int64_t statements_written() const { return statements_written_; }

 private:
  // cuda.cpp: the whole, control flow
  void section(std::span<const Statement> statements);
  void body(std::span<const Statement> statements);
  void statement(const Statement& statement);
  void emit(const For& node);
  void emit(const If& node);
  void name_offsets(const For& node);
  void emit(const Roles& node);
  // The values for the places of resources/kernel/cuda.cu. `together`: blocks of a cluster reach
  // into each other up to their end.
  nlohmann::json record(bool together) const;
  nlohmann::json packed_record(TensorId id) const;
  nlohmann::json shared_record(TensorId id) const;
  nlohmann::json pipeline_record(PipelineId id, int64_t full) const;
  void declare_registers();

  // cuda_copy.cpp
  struct VectorMove {  // between a register tensor and memory
    TensorId side;     // the register tensor
    const Tile& memory;
    const TvLayout& seen;  // the registers, by the dimensions of `memory`
    int64_t vector;        // elements
    bool load;
  };

  void emit(const Copy& node);
  void copy_registers(TensorId from, TensorId to);
  void refuse_conversion(const Tensor& src, const Tensor& dst);
  void move_shared(const VectorMove& move, const layout::MemoryLayout& layout, const Index& base,
                   const std::optional<Index>& peer = {});
  template <class F> void move_vectors(const VectorMove& move, const F& line);
  void copy_matrices(const Sides& sides, const TvLayout& seen, const InstructionChoice& choice);
  void copy_by_threads(const Copy& node, const Sides& sides, const InstructionChoice& choice);

  // cuda_tma.cpp
  class TmaCopy;
  void copy_by_tma(const Copy& node, const Sides& sides, const InstructionChoice& choice);

  // cuda_compute.cpp
  void emit(const Fill& node);
  void emit(const Map& node);
  std::string as_float(TensorId id, const Index& index = Index::variable("i"));
  std::string from_float(Dtype to, const std::string& value);
  void no_arithmetic(Dtype dtype);

  bool is_foreign(Dtype dtype) const {  // an 8-bit float, where the target has none
    return capabilities_.fp8_tflops == 0 && is_float(dtype) && bits_of(dtype) == 8;
  }

  using LeafText = std::function<std::string(const Value&)>;
  using MakeFloats = std::function<void(const std::string& array)>;
  class ValueText;
  std::string value_text(const Value& value, const LeafText& leaf, bool integers = false);
  void as_floats(TensorId id, bool own, const char* array, const MakeFloats& make);
  void emit(const ConvertLayout& node);
  void emit(const Bitcast& node);
  void emit(const Mma& node);
  void mma_warpgroup(const Mma& node, const Instruction& row);
  std::string descriptor(const Tile& tile, int k_dim, int groups, Index& k_step, int k);

  // cuda_reduce.cpp
  void emit(const Reduce& node);
  void reduce_own_values(const Reduce& node, const std::string& dst);
  bool reduce_lanes(const Reduce& node, const std::string& dst);
  void reduce_warps(const Reduce& node, const std::string& dst);
  void combine_lanes(ReduceOp op, const std::string& dst, int64_t bit);
  void emit(const ClusterReduce&
                node);  // the others' parts are waited for where what they make is needed
  void finish_meeting();
  void combine_parts(ReduceOp op, const std::string& dst, int64_t values, const std::string& part,
                     int64_t count, const Index& address);

  // cuda_scan.cpp
  class ScanText;
  void emit(const tile::Scan& node);

  // cuda_pipeline.cpp
  void emit(const Produce& node);
  void emit(const Consume& node);
  void advance(const Pipeline& pipeline, bool phase);

  void drain(StatementId loop, const Body& body);
  void release_last(PipelineId id, bool more);  // more: another stage is being read
  void fence_reads();
  void pipeline_counters(std::span<const Statement> statements);
  Peers peers_of(PipelineId id) const;  // those whose fetches fill a pipeline's stages here
  void release_stage(PipelineId id, const std::string& stage);
  void emit(const Signal& node);
  void emit(const Wait& node);
  void emit(const ClusterSync&);

  // Helpers
  std::string name(TensorId id) const { return tensor(id).name; }

  const TvLayout& registers(TensorId id) const { return solution_.registers.at(id); }

  Index digit(int64_t below,
              int64_t extent);  // t / below % extent, a named constant of the role
  // Where a thread's element is along a dimension of a layout, modes from `skip_modes` on; in the
  // turns of the loops.
  Index within(const TvLayout& layout, size_t dim, const std::vector<ValueLoop>& loops,
               size_t skip_modes = 0);
  // Threads that hold a replica only: a condition that is true for one of them, or empty.
  std::string first_replica(const TvLayout& layout);
  std::vector<ValueLoop> value_loops(const TvLayout& layout, int64_t vector);

  Writer::Block unrolled(const std::string& variable, int64_t count) {
    return out_.block("WL_UNROLL for (int {0} = 0; {0} < {1}; ++{0}) {{", variable, count);
  }

  // The same where there is more than one turn.
  Writer::Block over(const std::string& variable, int64_t count) {
    return count > 1 ? unrolled(variable, count) : Writer::Block{out_, 0};
  }

  // The variable of such loops.
  Index counter(const std::string& variable, int64_t count) {
    bounds_.enter(variable, count);
    return count > 1 ? Index::variable(variable) : 0;
  }

  void assign(const std::string& array, int64_t count,
              const std::string& value) {  // value: of element i
    out_.line("WL_UNROLL for (int i = 0; i < {}; ++i) {}[i] = {};", count, array, value);
  }

  // `registers`: the loops index an array of registers, and must vanish; else they are unrolled in
  // part. `scope`: something is declared within, loops or not.
  Writer::Block open_loops(const std::vector<ValueLoop>& loops, bool registers = true,
                           bool scope = false);
  Index offset(const Tile& tile, size_t dim) const;

  Index named(const Index& index) const {  // by what the loops around call it
    const auto found = offsets_.find(index.text());
    return found == offsets_.end() ? index : Index::variable(found->second);
  }

  // `per`: elements to one of the array, for types of less than a byte.
  static Index value_index(const std::vector<ValueLoop>& loops, int64_t per = 1);

  int64_t array_length(TensorId id, int64_t elements) const {
    return elements / per_byte(tensor(id).dtype);
  }

  // Coordinates of a memory tile's dimensions, from a register-side layout whose dimensions
  // correspond to them.
  std::vector<Index> coordinates(const Tile& memory, const TvLayout& seen,
                                 const std::vector<ValueLoop>& loops, size_t skip_modes = 0);

  struct Place {  // of a vector in global memory
                  // behind other arguments: when it lies inside its tensor, and what
    // counts where it does not
    std::string address;
    std::string tail;
  };

  Place place_in(const Tile& global, std::vector<Index> at, const std::string& fill = "");
  Place place_in_prepacked(const Tile& tile, const std::vector<Index>& within,
                           const std::string& fill);
  std::string bounds_condition(const Tile& memory, const std::vector<Index>& coordinates) const;
  std::string global_address(const Tile& memory, const std::vector<Index>& coordinates,
                             bool store = false) const;
  std::string shared_address(const Tile& memory, const std::vector<Index>& coordinates) const;
  std::string address_in(const layout::MemoryLayout& layout, const Index& base,
                         const std::vector<Index>& coordinates) const;
  Index shared_base(TensorId id) const;  // of the current stage
  void note_pointer(TensorId id);
  std::string note_map(TensorId global, const TensorMapSpec& spec);
  void note_argument(TensorId id, bool tensor_map, const TensorMapSpec& spec = {});

  // Shared memory behind the tensors, at a multiple of 16 bytes.
  int64_t allocate(int64_t bytes);

  static Index shared_at(int64_t offset) { return Index::variable("smem") + offset; }

  // What synchronization.h has decided for a place of the statement, or of another.
  void synchronize(SyncPart part, int number = 0) { synchronize({at_->id, part, number}); }

  void synchronize(const SyncPlace& place) { write(sync_.at(place)); }

  void write(const std::vector<SyncAction>& actions);
  void meet();  // a barrier of the role's threads
  void fence_registers(TensorId id);

  bool is_stage(TensorId id) const { return tensor(id).pipeline >= 0; }

  const synth::Solution& solution_;
  const CudaAnalysis analysis_;
  const Synchronization sync_;
  synth::Bounds bounds_ = synth::Bounds(program_);  // and of the variables of the text's own loops

  // The role being written
  int role_ = -1;
  int role_threads_ = 0;
  int role_first_ = 0;
  bool single_thread_ = false;  // the code runs in one elected thread
  PipelineId stage_of_ = -1;
  std::string stage_number_;  // the current stage's number while inside Produce or Consume

  struct Meeting {
    TensorId made;
    std::function<void()> finish;
  };

  int named_ = 0;                   // parts of values that have names
  std::optional<Meeting> meeting_;  // of a cluster's blocks, that this one has sent its part to
  int64_t statements_written_ = 0;

  std::vector<Argument> args_;
  std::vector<std::string> params_;
  int64_t shared_bytes_ = 0;
  std::map<PipelineId, int64_t>
      barriers_;  // offset of a pipeline's full barriers; its empty ones follow
  std::optional<int64_t>
      meetings_;  // offset of the two barriers that cluster reductions take by turns
  std::set<std::string> digits_;
  std::map<std::string, std::string>
      offsets_;  // names of index expressions that the loops around have computed
};
}  // namespace warploom::codegen
