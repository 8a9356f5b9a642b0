// oneDNN, opened at run time: the C API of its second version, the one that Debian 12 has
// (libdnnl.so.2). Source: oneDNN developer guide, "C API", and the numbers of dnnl_types.h. Within
// the room only: dnnl.cpp finds the library and keeps tensors in its layouts, dnnl_steps.cpp makes
// primitives of steps.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "runtime/library.h"
#include "vendor/libraries.h"
#include "vendor/program.h"

namespace warploom::vendor {
using Handle = void*;
using Object = std::shared_ptr<void>;

// Descriptors are structures that the caller holds: here blocks of bytes large enough for any (a
// memory descriptor has 696 in 2.6, the largest of operations 6 kB).
struct alignas(64) MemoryDesc {
  std::array<std::byte, 1024> bytes{};
};

constexpr size_t kMemoryDescBytes = 696;

struct alignas(64) OperationDesc {
  std::array<std::byte, 16384> bytes{};
};

struct Dnnl {
  struct Version {
    int major;
    int minor;
    int patch;
  };

  struct Argument {
    int number;
    Handle memory;
  };

  using PrimitiveDescMaker = runtime::Maker<const void*, const void*, Handle, const void*>;
  using ReorderMaker = runtime::Maker<const void*, Handle, const void*, Handle, const void*>;
  using Dims = std::array<int64_t, 12>;  // as many as oneDNN reads

  // The C functions' types; a result of 0 says that it worked.
  using EngineCreate = int(Handle*, int kind, size_t index);
  using StreamCreate = int(Handle*, Handle engine, unsigned flags);
  using StreamWait = int(Handle);
  using ByStrides = int(void*, int rank, const int64_t*, int type, const int64_t*);
  using ByTag = int(void*, int rank, const int64_t*, int type, int tag);
  using Equal = int(const void*, const void*);
  using SetPostOps = int(Handle, const void*);
  using AppendEltwise = int(Handle, float scale, int algorithm, float alpha, float beta);
  using AppendBinary = int(Handle, int algorithm, const void* desc);
  using Convolution = int(void*, int kind, int algorithm, const void* src, const void* weights,
                          const void* bias, const void* dst, const int64_t* strides,
                          const int64_t* dilations, const int64_t* before, const int64_t* after);
  using Pooling = int(void*, int kind, int algorithm, const void* src, const void* dst,
                      const int64_t* strides, const int64_t* kernel, const int64_t* dilations,
                      const int64_t* before, const int64_t* after);
  using Matmul = int(void*, const void* src, const void* weights, const void* bias,
                     const void* dst);
  using Softmax = int(void*, int kind, int algorithm, const void* src, const void* dst, int axis);
  using BatchNorm = int(void*, int kind, const void* data, float epsilon, unsigned flags);
  using LayerNorm = int(void*, int kind, const void* data, const void* statistics, float epsilon,
                        unsigned flags);
  using Reduction = int(void*, int algorithm, const void* src, const void* dst, float p,
                        float epsilon);
  using Lrn = int(void*, int kind, int algorithm, const void* data, int64_t size, float alpha,
                  float beta, float k);
  using Eltwise = int(void*, int kind, int algorithm, const void* data, float alpha, float beta);
  using Binary = int(void*, int algorithm, const void* a, const void* b, const void* dst);
  using Query = int(const void*, int what, int index, void* result);
  using Execute = int(const void*, Handle stream, int count, const Argument*);

  const runtime::Library library{dnnl_names()};
  const Version* (*version)() = library["dnnl_version"];
  EngineCreate* engine_create = library["dnnl_engine_create"];
  StreamCreate* stream_create = library["dnnl_stream_create"];
  StreamWait* stream_wait = library["dnnl_stream_wait"];

  ByStrides* by_strides = library["dnnl_memory_desc_init_by_strides"];
  ByTag* by_tag = library["dnnl_memory_desc_init_by_tag"];
  size_t (*size_of)(const void*) = library["dnnl_memory_desc_get_size"];
  Equal* equal = library["dnnl_memory_desc_equal"];

  // Of a descriptor, an engine and the data.
  runtime::Maker<const void*, Handle, void*> memory{library["dnnl_memory_create"],
                                                    library["dnnl_memory_destroy"]};
  runtime::Maker<> attributes{library["dnnl_primitive_attr_create"],
                              library["dnnl_primitive_attr_destroy"]};
  SetPostOps* set_post_ops = library["dnnl_primitive_attr_set_post_ops"];
  runtime::Maker<> post_ops{library["dnnl_post_ops_create"], library["dnnl_post_ops_destroy"]};
  AppendEltwise* append_eltwise = library["dnnl_post_ops_append_eltwise"];
  AppendBinary* append_binary = library["dnnl_post_ops_append_binary"];

  Convolution* convolution = library["dnnl_dilated_convolution_forward_desc_init"];
  Convolution* deconvolution = library["dnnl_dilated_deconvolution_forward_desc_init"];
  Pooling* pooling = library["dnnl_pooling_v2_forward_desc_init"];
  Matmul* matmul = library["dnnl_matmul_desc_init"];
  Softmax* softmax = library["dnnl_softmax_v2_forward_desc_init"];
  BatchNorm* batch_norm = library["dnnl_batch_normalization_forward_desc_init"];
  LayerNorm* layer_norm = library["dnnl_layer_normalization_forward_desc_init"];
  Reduction* reduction = library["dnnl_reduction_desc_init"];
  Lrn* lrn = library["dnnl_lrn_forward_desc_init"];
  Eltwise* eltwise = library["dnnl_eltwise_forward_desc_init"];
  Binary* binary = library["dnnl_binary_desc_init"];

  // Of an operation, attributes, an engine and a hint; of two memory descriptors; and of such.
  PrimitiveDescMaker primitive_desc{library["dnnl_primitive_desc_create"],
                                    library["dnnl_primitive_desc_destroy"]};
  ReorderMaker reorder{library["dnnl_reorder_primitive_desc_create"],
                       library["dnnl_primitive_desc_destroy"]};
  const void* (*query_md)(const void*, int what,
                          int index) = library["dnnl_primitive_desc_query_md"];
  Query* query = library["dnnl_primitive_desc_query"];
  runtime::Maker<const void*> primitive{library["dnnl_primitive_create"],
                                        library["dnnl_primitive_destroy"]};
  Execute* execute = library["dnnl_primitive_execute"];
  Handle engine = nullptr;
  Handle stream = nullptr;
  bool ready = library.complete() && open();

  static const Dnnl& get();
  std::string name() const;  // "oneDNN 2.6.3"

 private:
  // The engine of the CPU and a stream on it.
  bool open() {
    constexpr int kCpu = 1;
    constexpr unsigned kInOrder = 1;
    if (engine_create(&engine, kCpu, 0) != 0) return false;
    return stream_create(&stream, engine, kInOrder) == 0;
  }
};

// Numbers of arguments.
constexpr int kArgSrc = 1;
constexpr int kArgSecond = 2;
constexpr int kArgDst = 17;
constexpr int kArgWeights = 33;
constexpr int kArgBias = 41;
constexpr int kArgMean = 49;
constexpr int kArgVariance = 50;
constexpr int kArgScale = 51;
constexpr int kArgShift = 52;
constexpr int kArgPostOp = 16384;  // times its number from 1, with kArgSecond

int binary_code(Combine combine);  // dnnl_alg_kind_t

class DnnlLibrary : public Library {
 public:
  DnnlLibrary(Layouts layouts, const VendorProblem& problem);

  std::string name() const override { return d_.name(); }

  Status add(const Step& step, Program& program) override;
  Status release(const std::string& buffer, Program& program) override;

 private:
  // A tensor in a layout, and the buffer that has it so.
  struct Held {
    MemoryDesc desc;
    std::string buffer;
    int64_t offset = 0;  // bytes
    int64_t end = 0;     // bytes of the buffer that it reaches over
  };

  // An argument of a primitive. `open`: the primitive chooses the layout.
  struct Operand {
    int number = 0;
    Place place;
    Held held;
    bool open = false;
  };

  using Arguments = std::vector<std::pair<int, Held>>;  // by their numbers

  // A primitive in the making (dnnl_steps.cpp).
  struct Making {
    std::vector<Operand> operands;
    OperationDesc operation;
    std::vector<After> after;  // as post-operations
    bool heavy = false;        // never by oneDNN's unoptimized code
  };

  Result<MemoryDesc> described(const Place& place) const;
  Result<MemoryDesc> any_layout(const Place& place) const;
  Result<Held> where(const Place& place, Program& program);
  Status take(Making& making, int number, const Place& place, bool open, Program& program);
  Status finish(Making making, Program& program);
  Status add_post_ops(const Making& making, const Object& post_ops, std::vector<Operand>& operands,
                      Program& program);
  Status reorder(const Held& from, const Held& to, Program& program);
  // What the primitive writes to `to` in the layout `desc`.
  Result<Held> written(const Operand& to, const MemoryDesc& desc, Program& program);
  Piece piece_of(const Object& primitive, const Arguments& arguments) const;
  Status deliver(const Operand& to, const Held& held, Program& program);

  Status make(const Convolution& call, const Step& step, Program& program);
  Status make(const Deconvolution& call, const Step& step, Program& program);
  Status make(const Pooling& call, const Step& step, Program& program);
  Status make(const Matmul& call, const Step& step, Program& program);
  Status make(const Softmax& call, const Step& step, Program& program);
  Status make(const BatchNorm& call, const Step& step, Program& program);
  Status make(const LayerNorm& call, const Step& step, Program& program);
  Status make(const Reduction& call, const Step& step, Program& program);
  Status make(const Lrn& call, const Step& step, Program& program);
  Status make(const Copy& call, const Step& step, Program& program);
  Status make(const Elementwise& call, const Step& step, Program& program);
  Status make(const Unmatched& call, const Step& step, Program& program);
  template <class Windowed>
  Status make_windowed(const Windowed& call, const Place& weights, const Step& step,
                       Program& program);

  tl::unexpected<Error> refused(std::string_view what) const { return not_served(name(), what); }

  const Dnnl& d_ = Dnnl::get();
  Layouts layouts_;
  bool own_now_ = false;             // layouts of its own for the step at hand
  std::set<std::string> passed_on_;  // tensors that need not lie row by row

  struct Kept {
    Held held;
    Place place;  // row by row
  };

  std::map<std::string, Kept> kept_;  // those of them that do not
};
}  // namespace warploom::vendor
