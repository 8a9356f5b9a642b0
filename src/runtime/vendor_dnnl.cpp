// oneDNN, opened at run time: the C API of its second version (libdnnl.so.2) and of its third (libdnnl.so.3).
// Source: oneDNN developer guide, "C API", and the numbers of dnnl_types.h.

#include "runtime/bound.h"
#include "runtime/library.h"
#include "runtime/type_codes.h"
#include "runtime/vendor.h"
namespace warploom::runtime {
namespace {
using Handle = void*;
using Dims = std::array<std::int64_t, 12>;  // as many as oneDNN reads

constexpr int kCpu = 1, kInOrder = 1, kForwardInference = 96, kSoftmaxAccurate = 0x30000;
constexpr int kArgSrc = 1, kArgDst = 17, kArgWeights = 33, kArgBias = 41;

struct Version {
  int major, minor, patch;
  const char* hash;
  unsigned cpu_runtime, gpu_runtime;
};
struct ExecArg {
  int arg;
  Handle memory;
};

struct Dnnl {
  const Library library{"libdnnl.so.3", "libdnnl.so.2"};
  const Version* (*version)() = library["dnnl_version"];
  const bool third = version && version()->major >= 3, second = !third;
  int (*engine_create)(Handle*, int kind, std::size_t index) = library["dnnl_engine_create"];
  int (*stream_create)(Handle*, Handle engine, unsigned flags) = library["dnnl_stream_create"];
  int (*stream_wait)(Handle) = library["dnnl_stream_wait"];
  int (*memory_create)(Handle*, const void* desc, Handle engine, void* data) = library["dnnl_memory_create"];
  int (*memory_destroy)(Handle) = library["dnnl_memory_destroy"];
  int (*attr_create)(Handle*) = library["dnnl_primitive_attr_create"];
  int (*attr_destroy)(Handle) = library["dnnl_primitive_attr_destroy"];
  int (*attr_set_post_ops)(Handle, const void*) = library["dnnl_primitive_attr_set_post_ops"];
  int (*post_ops_create)(Handle*) = library["dnnl_post_ops_create"];
  int (*post_ops_destroy)(Handle) = library["dnnl_post_ops_destroy"];
  int (*primitive_create)(Handle*, const void*) = library["dnnl_primitive_create"];
  int (*primitive_destroy)(Handle) = library["dnnl_primitive_destroy"];
  int (*primitive_desc_destroy)(Handle) = library["dnnl_primitive_desc_destroy"];
  int (*execute)(const void*, Handle stream, int count, const ExecArg*) = library["dnnl_primitive_execute"];
  // Second version: descriptors are structures that the caller holds; here a block of bytes large enough for any of them.
  int (*desc_init2)(void*, int rank, const std::int64_t*, int type,
                    const std::int64_t*) = library("dnnl_memory_desc_init_by_strides", second);
  int (*append_eltwise2)(Handle, float scale, int algorithm, float alpha, float beta) = library("dnnl_post_ops_append_eltwise",
                                                                                                second);
  int (*matmul_init2)(void*, const void* src, const void* weights, const void* bias,
                      const void* dst) = library("dnnl_matmul_desc_init", second);
  int (*softmax_init2)(void*, int kind, int algorithm, const void* src, const void* dst,
                       int axis) = library("dnnl_softmax_v2_forward_desc_init", second);
  int (*primitive_desc_create2)(Handle*, const void* op, const void* attr, Handle engine,
                                const void* hint) = library("dnnl_primitive_desc_create", second);
  // Third version: descriptors are handles.
  int (*desc_create3)(Handle*, int rank, const std::int64_t*, int type,
                      const std::int64_t*) = library("dnnl_memory_desc_create_with_strides", third);
  int (*desc_destroy3)(Handle) = library("dnnl_memory_desc_destroy", third);
  int (*append_eltwise3)(Handle, int algorithm, float alpha, float beta) = library("dnnl_post_ops_append_eltwise", third);
  int (*matmul_create3)(Handle*, Handle engine, const void* src, const void* weights, const void* bias, const void* dst,
                        const void* attr) = library("dnnl_matmul_primitive_desc_create", third);
  int (*softmax_create3)(Handle*, Handle engine, int kind, int algorithm, const void* src, const void* dst, int axis,
                         const void* attr) = library("dnnl_softmax_forward_primitive_desc_create", third);
  Handle engine = nullptr, stream = nullptr;
  bool ready = library.complete() && engine_create(&engine, kCpu, 0) == 0 && stream_create(&stream, engine, kInOrder) == 0;
};

const Dnnl& dnnl() {
  static const Dnnl instance;
  return instance;
}

// Large enough for the second version's operation descriptors (its matmul's is 2.7 kB in 2.6).
struct alignas(64) Block {
  std::array<std::byte, 16384> bytes{};
};

// A tensor of the primitive: its buffer, its argument number, its layout.
struct Operand {
  BufferSpec buffer;
  int arg = 0;
  std::shared_ptr<void> desc;  // the second version's block, the third's handle; null where there is no such operand
};

struct DnnlSet {
  std::vector<Buffer> buffers;
  std::vector<std::shared_ptr<void>> memories;
  std::vector<ExecArg> arguments;
};

class DnnlPrimitive final : public WithSets<DnnlSet> {
 public:
  explicit DnnlPrimitive(const VendorProblem& problem) : p_(problem), d_(dnnl()) {}
  ~DnnlPrimitive() override {
    sets_.clear();
    if (primitive_) d_.primitive_destroy(primitive_);
  }

  Status prepare() {
    for (const Dtype dtype : {p_.in, p_.out, p_.bias_dtype})
      if (!codes_of(dtype).dnnl) return not_served(name(), "an element type");
    if (p_.kind == VendorKind::matmul ? make_matmul() : make_softmax()) return ok();
    return not_served(name(), "the operation with these types, shapes or post-operations");
  }

  std::string name() const override {
    const Version* version = d_.version();
    return fmt::format("oneDNN {}.{}.{}", version->major, version->minor, version->patch);
  }

  Status bind(const Bindings& buffers, int set) override {
    DnnlSet bound;
    for (const Operand& operand : operands_) {
      if (!operand.desc) continue;
      WARPLOOM_TRY(const Buffer buffer, named_buffer(buffers, operand.buffer));
      Handle memory = nullptr;
      if (d_.memory_create(&memory, operand.desc.get(), d_.engine, buffer.address()) != 0)
        return not_served(name(), "a memory object it refused");
      bound.memories.emplace_back(memory, d_.memory_destroy);
      bound.arguments.push_back({operand.arg, memory});
      bound.buffers.push_back(buffer);
    }
    return keep(set, std::move(bound));
  }

  Status launch(int set) override {
    WARPLOOM_TRY(const DnnlSet* const bound, kept(set));
    const auto count = static_cast<int>(bound->arguments.size());
    const int code = d_.execute(primitive_, d_.stream, count, bound->arguments.data());
    if (code == 0 && d_.stream_wait(d_.stream) == 0) return ok();
    return fail({ErrorCode::kInternal, "dnnl_primitive_execute failed", name(), "status 0", fmt::format("status {}", code), ""});
  }

 private:
  // A [batch, r, c] operand; a batch or bias dimension of 1 is repeated.
  bool describe(Operand& operand, const char* buffer, int arg, Dtype dtype, std::int64_t batch, std::int64_t r, std::int64_t c,
                bool transposed = false) {
    operand.buffer = {buffer, dtype, {batch, r, c}};
    operand.arg = arg;
    const std::int64_t row = transposed ? 1 : c, column = transposed ? r : 1;
    const Dims dims = {batch, r, c}, strides = {r * c, row, column};
    const int first = p_.batch == 1, rank = 3 - first, type = codes_of(dtype).dnnl;
    if (!d_.third) {
      operand.desc = std::make_shared<Block>();
      return d_.desc_init2(operand.desc.get(), rank, dims.data() + first, type, strides.data() + first) == 0;
    }
    Handle handle = nullptr;
    if (d_.desc_create3(&handle, rank, dims.data() + first, type, strides.data() + first) != 0) return false;
    operand.desc = {handle, d_.desc_destroy3};
    return true;
  }

  bool make_matmul() {
    Operand &a = operands_[0], &b = operands_[1], &c = operands_[2], &bias = operands_[3];
    const std::int64_t batch = p_.batch;
    return describe(a, "A", kArgSrc, p_.in, p_.batched_a ? batch : 1, p_.m, p_.k, p_.transpose_a) &&
           describe(b, "B", kArgWeights, p_.in, p_.batched_b ? batch : 1, p_.k, p_.n, p_.transpose_b) &&
           describe(c, "C", kArgDst, p_.out, batch, p_.m, p_.n) &&
           (p_.bias == BiasKind::none ||
            describe(bias, "bias", kArgBias, p_.bias_dtype, p_.bias == BiasKind::full ? batch : 1,
                     p_.bias == BiasKind::per_column ? 1 : p_.m, p_.bias == BiasKind::per_row ? 1 : p_.n)) &&
           make_primitive([&](const void* attr, Handle* desc, void* op) {
             if (d_.third)
               return d_.matmul_create3(desc, d_.engine, a.desc.get(), b.desc.get(), bias.desc.get(), c.desc.get(), attr);
             return d_.matmul_init2(op, a.desc.get(), b.desc.get(), bias.desc.get(), c.desc.get());
           });
  }

  bool make_softmax() {
    Operand &x = operands_[0], &y = operands_[1];
    return describe(x, "X", kArgSrc, p_.in, 1, p_.rows, p_.cols) && describe(y, "Y", kArgDst, p_.out, 1, p_.rows, p_.cols) &&
           make_primitive([&](const void* attr, Handle* desc, void* op) {
             constexpr int kind = kForwardInference, algorithm = kSoftmaxAccurate;
             if (d_.third) return d_.softmax_create3(desc, d_.engine, kind, algorithm, x.desc.get(), y.desc.get(), 1, attr);
             return d_.softmax_init2(op, kind, algorithm, x.desc.get(), y.desc.get(), 1);
           });
  }

  // `describe` makes the primitive's descriptor in the third version, and in the second what goes into it.
  template <class F>
  bool make_primitive(F&& describe) {
    Handle attr = nullptr, post = nullptr, desc = nullptr;
    bool good = d_.attr_create(&attr) == 0 && d_.post_ops_create(&post) == 0;
    const ActivationRow& activation = row_of(p_.activation);
    if (good && p_.activation != Activation::none && p_.kind == VendorKind::matmul) {
      const float alpha = p_.activation == Activation::silu ? 1.0f : 0.0f;
      good = (d_.third ? d_.append_eltwise3(post, activation.dnnl3, alpha, 0)
                       : d_.append_eltwise2(post, 1.0f, activation.dnnl2, alpha, 0)) == 0 &&
             d_.attr_set_post_ops(attr, post) == 0;
    }
    const auto op = std::make_unique<Block>();
    good = good && describe(attr, &desc, op->bytes.data()) == 0 &&
           (d_.third || d_.primitive_desc_create2(&desc, op->bytes.data(), attr, d_.engine, nullptr) == 0) &&
           d_.primitive_create(&primitive_, desc) == 0;
    if (desc) d_.primitive_desc_destroy(desc);
    if (post) d_.post_ops_destroy(post);
    if (attr) d_.attr_destroy(attr);
    return good;
  }

  VendorProblem p_;
  const Dnnl& d_;
  std::array<Operand, 4> operands_;
  Handle primitive_ = nullptr;
};
}  // namespace
Result<std::unique_ptr<Runnable>> dnnl_reference(const VendorProblem& problem) {
  if (!dnnl().ready) return not_served("oneDNN", "no libdnnl.so.3 or .2");
  auto primitive = std::make_unique<DnnlPrimitive>(problem);
  WARPLOOM_CHECK(primitive->prepare());
  return primitive;
}
}  // namespace warploom::runtime
