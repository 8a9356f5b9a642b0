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

  using Dims = std::array<int64_t, 12>;  // as many as oneDNN reads
  const runtime::Library library{dnnl_names()};
  const Version* (*version)() = library["dnnl_version"];
  int (*engine_create)(Handle*, int kind, size_t index) = library["dnnl_engine_create"];
  int (*stream_create)(Handle*, Handle engine, unsigned flags) = library["dnnl_stream_create"];
  int (*stream_wait)(Handle) = library["dnnl_stream_wait"];

  int (*by_strides)(void*, int rank, const int64_t*, int type,
                    const int64_t*) = library["dnnl_memory_desc_init_by_strides"];
  int (*by_tag)(void*, int rank, const int64_t*, int type,
                int tag) = library["dnnl_memory_desc_init_by_tag"];
  size_t (*size_of)(const void*) = library["dnnl_memory_desc_get_size"];
  int (*equal)(const void*, const void*) = library["dnnl_memory_desc_equal"];

  // Of a descriptor, an engine and the data.
  runtime::Maker<const void*, Handle, void*> memory{library["dnnl_memory_create"],
                                                    library["dnnl_memory_destroy"]};
  runtime::Maker<> attributes{library["dnnl_primitive_attr_create"],
                              library["dnnl_primitive_attr_destroy"]};
  int (*set_post_ops)(Handle, const void*) = library["dnnl_primitive_attr_set_post_ops"];
  runtime::Maker<> post_ops{library["dnnl_post_ops_create"], library["dnnl_post_ops_destroy"]};
  int (*append_eltwise)(Handle, float scale, int algorithm, float alpha,
                        float beta) = library["dnnl_post_ops_append_eltwise"];
  int (*append_binary)(Handle, int algorithm,
                       const void* desc) = library["dnnl_post_ops_append_binary"];

  int (*convolution)(void*, int kind, int algorithm, const void* src, const void* weights,
                     const void* bias, const void* dst, const int64_t* strides,
                     const int64_t* dilations, const int64_t* before,
                     const int64_t* after) = library["dnnl_dilated_convolution_forward_desc_init"];
  decltype(convolution) deconvolution = library["dnnl_dilated_deconvolution_forward_desc_init"];
  int (*pooling)(void*, int kind, int algorithm, const void* src, const void* dst,
                 const int64_t* strides, const int64_t* kernel, const int64_t* dilations,
                 const int64_t* before,
                 const int64_t* after) = library["dnnl_pooling_v2_forward_desc_init"];
  int (*matmul)(void*, const void* src, const void* weights, const void* bias,
                const void* dst) = library["dnnl_matmul_desc_init"];
  int (*softmax)(void*, int kind, int algorithm, const void* src, const void* dst,
                 int axis) = library["dnnl_softmax_v2_forward_desc_init"];
  int (*batch_norm)(void*, int kind, const void* data, float epsilon,
                    unsigned flags) = library["dnnl_batch_normalization_forward_desc_init"];
  int (*layer_norm)(void*, int kind, const void* data, const void* statistics, float epsilon,
                    unsigned flags) = library["dnnl_layer_normalization_forward_desc_init"];
  int (*reduction)(void*, int algorithm, const void* src, const void* dst, float p,
                   float epsilon) = library["dnnl_reduction_desc_init"];
  int (*lrn)(void*, int kind, int algorithm, const void* data, int64_t size, float alpha,
             float beta, float k) = library["dnnl_lrn_forward_desc_init"];
  int (*eltwise)(void*, int kind, int algorithm, const void* data, float alpha,
                 float beta) = library["dnnl_eltwise_forward_desc_init"];
  int (*binary)(void*, int algorithm, const void* a, const void* b,
                const void* dst) = library["dnnl_binary_desc_init"];

  // Of an operation, attributes, an engine and a hint; of two memory descriptors; and of such.
  runtime::Maker<const void*, const void*, Handle, const void*> primitive_desc{
      library["dnnl_primitive_desc_create"], library["dnnl_primitive_desc_destroy"]};
  runtime::Maker<const void*, Handle, const void*, Handle, const void*> reorder{
      library["dnnl_reorder_primitive_desc_create"], library["dnnl_primitive_desc_destroy"]};
  const void* (*query_md)(const void*, int what,
                          int index) = library["dnnl_primitive_desc_query_md"];
  int (*query)(const void*, int what, int index,
               void* result) = library["dnnl_primitive_desc_query"];
  runtime::Maker<const void*> primitive{library["dnnl_primitive_create"],
                                        library["dnnl_primitive_destroy"]};
  int (*execute)(const void*, Handle stream, int count,
                 const Argument*) = library["dnnl_primitive_execute"];
  Handle engine = nullptr;
  Handle stream = nullptr;
  bool ready = library.complete() && engine_create(&engine, 1, 0) == 0 &&
               stream_create(&stream, engine, 1) == 0;

  static const Dnnl& get();
  std::string name() const;  // "oneDNN 2.6.3"
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
  Piece piece_of(const Object& primitive, const std::vector<std::pair<int, Held>>& arguments) const;
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
