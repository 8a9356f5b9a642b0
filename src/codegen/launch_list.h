// What a region under a schedule becomes: kernels with their launch shapes and arguments,
// workspaces, an order.
//
// The record is plain data and prints as JSON (plan.json of a bundle holds one); nothing in it is
// code that runs on the host. Buffers are named: the region's inputs and outputs by the graph's
// tensor names, workspaces by names of their own.
//
//   kernels[0] transpose_b : args B, Bt(workspace)
//   kernels[1] gemm_tf32   : args tensor map of A, tensor map of Bt, C
#pragma once
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "layout/memory_layout.h"

namespace warploom {
enum class Engine : uint8_t { cuda, cpu };

// The operand of cuTensorMapEncodeTiled (CUDA driver API, "Tensor Map Object Management"):
// dimension 0 is the fastest.
struct TensorMapSpec {
  Dtype dtype = Dtype::bf16;
  std::vector<int64_t> dims;           // elements
  std::vector<int64_t> strides_bytes;  // of dims 1 .. rank-1
  std::vector<int64_t> box;            // elements, each at most 256
  int swizzle_bytes = 0;               // 0, 32, 64 or 128
  friend bool operator==(const TensorMapSpec&, const TensorMapSpec&) = default;
};

struct Argument {
  std::string buffer;       // which buffer
  bool tensor_map = false;  // passed as a tensor map over the buffer instead of its address
  TensorMapSpec map;
  bool zeroed = false;  // the buffer is filled with zeros before the launch
  bool atomic = false;  // added to in any order, so that two runs may differ in the last bits
  // Not empty: the kernel wants the buffer's elements in this order. For each dimension of the
  // tensor that the buffer holds row by row before it is packed, digits of a coordinate as in
  // layout::MemoryLayout; in JSON pairs of extent and stride. Of a 4x4 tensor
  // [[[2,4],[2,8]], [[4,1]]] leaves the order of rows, [[[2,1],[2,8]], [[2,2],[2,4]]] puts 2x2
  // tiles one behind another.
  std::vector<std::vector<layout::MemoryMode>> prepacked = {};
  bool written = false;  // the kernel stores into it; false as well where nothing is known
  // The part of the buffer that the kernel's tensor is, in bytes: a step of a sequence. 0 bytes:
  // all from `offset` on.
  int64_t offset = 0;
  int64_t bytes = 0;
};

struct Kernel {
  std::string name;    // the symbol
  std::string source;  // complete text; compiles against the device headers alone
  std::array<int64_t, 3> grid = {1, 1, 1};
  std::array<int64_t, 3> cluster = {1, 1, 1};
  int threads = 128;  // a block; for the CPU engine 1
  int64_t shared_bytes = 0;
  std::vector<Argument> args;
  // Programmatic dependent launch: the kernel may be set up while the one before it on the stream
  // ends, for which it waits itself.
  bool programmatic_launch = false;
  bool cooperative = false;  // all blocks run at the same time, or the launch fails
  // Where the symbol stands in the source, as emission put it there: bytes from the start,
  // ascending. Empty of a text from elsewhere, and not part of the record.
  std::vector<size_t> symbol_at = {};
};

// The kernel under another symbol. An emitted text has it wherever it had the old one; a text from
// elsewhere is told by a #define in front of it.
Kernel renamed(Kernel kernel, const std::string& symbol);

struct BufferSpec {
  std::string name;
  Dtype dtype = Dtype::f32;
  std::vector<int64_t> shape;
  int64_t elements() const;
  int64_t bytes() const;
};

// What kernels promise where inputs are infinite or NaN: what IEEE says, or nothing, as where fp32
// is put together from halves of its digits and infinity · 0 appears that nobody asked for.
enum class SpecialValues : uint8_t { exact, finite };
inline constexpr std::string_view kSpecialValues[] = {"exact", "finite"};

std::string_view name_of(SpecialValues special);
std::optional<SpecialValues> special_values_named(std::string_view name);

struct LaunchList {
  Engine engine = Engine::cuda;
  std::string arch;                // "sm_90a", "sm_80", "x86-64-v4", …
  std::vector<BufferSpec> inputs;  // in the graph's order
  std::vector<BufferSpec> outputs;
  std::vector<BufferSpec> workspaces;
  std::vector<Kernel> kernels;  // launched in order, each seeing what the ones before it wrote
  // Of the inputs, by name: those that hold the same in every call.
  std::vector<std::string> constants = {};
  // The numbers of those kernels, ascending, that run once, when the list is loaded, and not in
  // each call (prepare.h).
  std::vector<size_t> prepare = {};
  // Of all kernels, those that prepare among them, by the cost model; 0 where there is none (the
  // CPU). Not part of the record.
  double predicted_us = 0;
  SpecialValues special = SpecialValues::exact;
  // A text of it was not written by this program: it is compiled and judged as a stranger's. Not
  // part of the record, since a record may be anybody's.
  bool foreign = false;
};

// Lays the elements of inputs that kernels want packed, which come row by row, as they want them:
// once, before the first launch.
void pack_inputs(const LaunchList& list, std::map<std::string, std::vector<std::byte>>& buffers);

// What is read is as it was written and can be launched (launch_check.h): who takes a list need not
// look again.
nlohmann::json to_json(const LaunchList& list);
Result<LaunchList> launch_list_from_json(const nlohmann::json& json);

// CPU kernels are C functions  extern "C" void NAME(void* const* buffers, long long task, void*
// scratch): one call a block, `buffers` in the order of args, `task` the block's linear index (x
// fastest), `scratch` shared_bytes of memory aligned to 4096, private to the calling thread. Blocks
// run in any order on any thread.
using CpuKernel = void (*)(void* const* buffers, long long task, void* scratch);

// Declarations: the launch list of a kernel file that anybody may write, in comment lines. No other
// code of it runs than the kernels.
//
//   // warploom: workspace partial f32[128,64]
//   // warploom: kernel rows grid=128 threads=256 args=x,w,partial
//   // warploom: kernel finish grid=8,4,1 threads=64 shared=4096 args=partial,y zeroed=y
//
// Kernels are launched in the order of their lines, each seeing what the ones before it wrote; one
// may come several times. Buffers have the names of the model's tensors, or are workspaces of a
// line above. What may be left out: threads=N of a block (128; GPU only), shared=BYTES (on the CPU
// of scratch) and zeroed=…, those args that are filled with zeros before the launch.
//
// A file whose kernels take finite inputs alone says so by `// warploom: special finite`.
//
// Errors: kernel-invalid with the line.
// The launch list that `text` declares; `problem` says its engine, architecture, inputs and
// outputs. `place` names the file.
Result<LaunchList> declared_list(const std::string& text, const std::string& place,
                                 const LaunchList& problem);
}  // namespace warploom
