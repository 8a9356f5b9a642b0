// oneDNN, opened at run time: the C API of its second version (libdnnl.so.2) and of its third (libdnnl.so.3).
// Source: oneDNN developer guide, "C API", and the numbers of dnnl_types.h.
#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <variant>

#include "runtime/library.h"
#include "runtime/vendor_parts.h"

namespace warploom::runtime {
namespace {

using Handle = void*;
constexpr int kMaxDims = 12;
using Dims = std::array<std::int64_t, kMaxDims>;

enum Numbers : int {
  kCpu = 1,
  kInOrder = 1,
  kForwardInference = 96,
  kSoftmaxAccurate = 0x30000,
  kArgSrc = 1,
  kArgDst = 17,
  kArgWeights = 33,
  kArgBias = 41,
};

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
  const Version* (*version)() = nullptr;
  int (*engine_create)(Handle*, int kind, std::size_t index) = nullptr;
  int (*stream_create)(Handle*, Handle engine, unsigned flags) = nullptr;
  int (*stream_wait)(Handle) = nullptr;
  int (*memory_create)(Handle*, const void* desc, Handle engine, void* data) = nullptr;
  int (*memory_destroy)(Handle) = nullptr;
  int (*attr_create)(Handle*) = nullptr;
  int (*attr_destroy)(Handle) = nullptr;
  int (*attr_set_post_ops)(Handle, const void*) = nullptr;
  int (*post_ops_create)(Handle*) = nullptr;
  int (*post_ops_destroy)(Handle) = nullptr;
  int (*primitive_create)(Handle*, const void*) = nullptr;
  int (*primitive_destroy)(Handle) = nullptr;
  int (*primitive_desc_destroy)(Handle) = nullptr;
  int (*execute)(const void*, Handle stream, int count, const ExecArg*) = nullptr;
  // Second version: descriptors are structures that the caller holds; here a block of bytes large enough for any of them.
  int (*desc_init2)(void*, int rank, const std::int64_t*, int type, const std::int64_t*) = nullptr;
  int (*append_eltwise2)(Handle, float scale, int algorithm, float alpha, float beta) = nullptr;
  int (*matmul_init2)(void*, const void* src, const void* weights, const void* bias, const void* dst) = nullptr;
  int (*softmax_init2)(void*, int kind, int algorithm, const void* src, const void* dst, int axis) = nullptr;
  int (*primitive_desc_create2)(Handle*, const void* op, const void* attr, Handle engine, const void* hint) = nullptr;
  // Third version: descriptors are handles.
  int (*desc_create3)(Handle*, int rank, const std::int64_t*, int type, const std::int64_t*) = nullptr;
  int (*desc_destroy3)(Handle) = nullptr;
  int (*append_eltwise3)(Handle, int algorithm, float alpha, float beta) = nullptr;
  int (*matmul_create3)(Handle*, Handle engine, const void* src, const void* weights, const void* bias, const void* dst,
                        const void* attr) = nullptr;
  int (*softmax_create3)(Handle*, Handle engine, int kind, int algorithm, const void* src, const void* dst, int axis,
                         const void* attr) = nullptr;
  Handle engine = nullptr, stream = nullptr;
  bool ready = false, third = false;
};

const Dnnl& dnnl() {
  static const Dnnl instance = [] {
    Dnnl d;
    const Library library{"libdnnl.so.3", "libdnnl.so.2"};
    d.ready =
        library && library.find("dnnl_version", d.version) && library.find("dnnl_engine_create", d.engine_create) &&
        library.find("dnnl_stream_create", d.stream_create) && library.find("dnnl_stream_wait", d.stream_wait) &&
        library.find("dnnl_memory_create", d.memory_create) && library.find("dnnl_memory_destroy", d.memory_destroy) &&
        library.find("dnnl_primitive_attr_create", d.attr_create) &&
        library.find("dnnl_primitive_attr_destroy", d.attr_destroy) &&
        library.find("dnnl_primitive_attr_set_post_ops", d.attr_set_post_ops) &&
        library.find("dnnl_post_ops_create", d.post_ops_create) &&
        library.find("dnnl_post_ops_destroy", d.post_ops_destroy) &&
        library.find("dnnl_primitive_create", d.primitive_create) &&
        library.find("dnnl_primitive_destroy", d.primitive_destroy) &&
        library.find("dnnl_primitive_desc_destroy", d.primitive_desc_destroy) &&
        library.find("dnnl_primitive_execute", d.execute);
    if (!d.ready) return d;
    d.third = d.version()->major >= 3;
    d.ready = d.third ? library.find("dnnl_memory_desc_create_with_strides", d.desc_create3) &&
                            library.find("dnnl_memory_desc_destroy", d.desc_destroy3) &&
                            library.find("dnnl_post_ops_append_eltwise", d.append_eltwise3) &&
                            library.find("dnnl_matmul_primitive_desc_create", d.matmul_create3) &&
                            library.find("dnnl_softmax_forward_primitive_desc_create", d.softmax_create3)
                      : library.find("dnnl_memory_desc_init_by_strides", d.desc_init2) &&
                            library.find("dnnl_post_ops_append_eltwise", d.append_eltwise2) &&
                            library.find("dnnl_matmul_desc_init", d.matmul_init2) &&
                            library.find("dnnl_softmax_v2_forward_desc_init", d.softmax_init2) &&
                            library.find("dnnl_primitive_desc_create", d.primitive_desc_create2);
    d.ready =
        d.ready && d.engine_create(&d.engine, kCpu, 0) == 0 && d.stream_create(&d.stream, d.engine, kInOrder) == 0;
    return d;
  }();
  return instance;
}

// dnnl_data_type_t, 0 where there is none.
int type_code(Dtype dtype) {
  switch (dtype) {
    case Dtype::f16: return 1;
    case Dtype::bf16: return 2;
    case Dtype::f32:
    case Dtype::tf32: return 3;
    case Dtype::f64: return 7;
    default: return 0;
  }
}

// Large enough for the second version's operation descriptors (its matmul's is 2.7 kB in 2.6).
struct alignas(64) Block {
  std::array<std::byte, 16384> bytes{};
};

class MemoryDesc {
 public:
  MemoryDesc() = default;
  MemoryDesc(const MemoryDesc&) = delete;
  MemoryDesc& operator=(const MemoryDesc&) = delete;
  ~MemoryDesc() {
    if (handle_) dnnl().desc_destroy3(handle_);
  }
  bool make(int rank, const Dims& dims, Dtype dtype, const Dims& strides) {
    made_ = dnnl().third
                ? dnnl().desc_create3(&handle_, rank, dims.data(), type_code(dtype), strides.data()) == 0
                : dnnl().desc_init2(block_.bytes.data(), rank, dims.data(), type_code(dtype), strides.data()) == 0;
    return made_;
  }
  const void* get() const {
    return !made_ ? nullptr : dnnl().third ? handle_ : static_cast<const void*>(block_.bytes.data());
  }

 private:
  Block block_;
  Handle handle_ = nullptr;
  bool made_ = false;
};

struct Operand {
  std::string buffer;
  int arg = 0;
  std::int64_t bytes = 0;
  MemoryDesc desc;
};

class DnnlPrimitive final : public Runnable {
 public:
  explicit DnnlPrimitive(const VendorProblem& problem) : p_(problem), d_(dnnl()) {}
  ~DnnlPrimitive() override {
    sets_.clear();
    if (primitive_) d_.primitive_destroy(primitive_);
  }

  Status prepare() {
    if (!type_code(p_.in) || !type_code(p_.out) || !type_code(p_.bias_dtype))
      return fail(not_served(name(), "an element type"));
    const bool made = p_.kind == VendorKind::matmul ? make_matmul() : make_softmax();
    return made ? ok() : Status(fail(not_served(name(), "the operation with these types, shapes or post-operations")));
  }

  std::string name() const override {
    const Version* version = d_.version();
    return fmt::format("oneDNN {}.{}.{}", version->major, version->minor, version->patch);
  }
  int sets() const override { return static_cast<int>(sets_.size()); }

  Status bind(const Bindings& buffers, int set) override {
    Set bound;
    for (const Operand& operand : operands_) {
      if (operand.buffer.empty()) continue;
      WARPLOOM_TRY(const Buffer buffer, named_buffer(buffers, operand.buffer, operand.bytes));
      Handle memory = nullptr;
      if (d_.memory_create(&memory, operand.desc.get(), d_.engine, buffer.address()) != 0)
        return fail(not_served(name(), "a memory object it refused"));
      bound.arguments.push_back({operand.arg, memory});
      bound.buffers.push_back(buffer);
    }
    if (set == sets()) sets_.emplace_back();
    sets_.at(static_cast<std::size_t>(set)) = std::move(bound);
    return ok();
  }

  Status launch(int set) override {
    const Set& bound = sets_.at(static_cast<std::size_t>(set));
    const int code =
        d_.execute(primitive_, d_.stream, static_cast<int>(bound.arguments.size()), bound.arguments.data());
    if (code == 0 && d_.stream_wait(d_.stream) == 0) return ok();
    return fail({ErrorCode::kInternal, "dnnl_primitive_execute failed", name(), "status 0",
                 fmt::format("status {}", code), ""});
  }

 private:
  struct Set {
    std::vector<Buffer> buffers;
    std::vector<ExecArg> arguments;
    Set() = default;
    Set(Set&&) = default;
    Set& operator=(Set&& other) noexcept {
      std::swap(buffers, other.buffers);
      std::swap(arguments, other.arguments);
      return *this;
    }
    ~Set() {
      for (const ExecArg& argument : arguments) dnnl().memory_destroy(argument.memory);
    }
  };

  bool describe(Operand& operand, std::string buffer, int arg, Dtype dtype, std::int64_t elements, const Dims& dims,
                const Dims& strides) {
    operand.buffer = std::move(buffer);
    operand.arg = arg;
    operand.bytes = elements * bytes_of(dtype);
    return operand.desc.make(rank_, dims, dtype, strides);
  }

  // A [batch, r, c] operand; a batch or bias dimension of 1 is repeated.
  bool describe_matrix(Operand& operand, std::string buffer, int arg, Dtype dtype, std::int64_t elements,
                       std::int64_t batch, std::int64_t r, std::int64_t c, bool transposed) {
    const std::int64_t row = transposed ? 1 : c, column = transposed ? r : 1;
    if (rank_ == 2) return describe(operand, std::move(buffer), arg, dtype, elements, {r, c}, {row, column});
    return describe(operand, std::move(buffer), arg, dtype, elements, {batch, r, c}, {r * c, row, column});
  }

  bool make_matmul() {
    rank_ = p_.batch == 1 ? 2 : 3;
    const VendorSizes sizes = sizes_of(p_);
    Operand &a = operands_[0], &b = operands_[1], &c = operands_[2], &bias = operands_[3];
    bool good =
        describe_matrix(a, "A", kArgSrc, p_.in, sizes.a, p_.batched_a ? p_.batch : 1, p_.m, p_.k, p_.transpose_a) &&
        describe_matrix(b, "B", kArgWeights, p_.in, sizes.b, p_.batched_b ? p_.batch : 1, p_.k, p_.n, p_.transpose_b) &&
        describe_matrix(c, "C", kArgDst, p_.out, sizes.c, p_.batch, p_.m, p_.n, false);
    if (p_.bias != BiasKind::none) {
      const bool full = p_.bias == BiasKind::full;
      good = good && describe_matrix(bias, "bias", kArgBias, p_.bias_dtype, sizes.bias, full ? p_.batch : 1,
                                     p_.bias == BiasKind::per_column ? 1 : p_.m,
                                     p_.bias == BiasKind::per_row ? 1 : p_.n, false);
    }
    return good && make_primitive([&](const void* attr, Handle* desc) {
             if (d_.third)
               return d_.matmul_create3(desc, d_.engine, a.desc.get(), b.desc.get(), bias.desc.get(), c.desc.get(),
                                        attr);
             auto op = std::make_unique<Block>();
             const int code =
                 d_.matmul_init2(op->bytes.data(), a.desc.get(), b.desc.get(), bias.desc.get(), c.desc.get());
             return code ? code : d_.primitive_desc_create2(desc, op->bytes.data(), attr, d_.engine, nullptr);
           });
  }

  bool make_softmax() {
    rank_ = 2;
    Operand &x = operands_[0], &y = operands_[1];
    const Dims dims = {p_.rows, p_.cols}, strides = {p_.cols, 1};
    const std::int64_t elements = p_.rows * p_.cols;
    if (!describe(x, "X", kArgSrc, p_.in, elements, dims, strides) ||
        !describe(y, "Y", kArgDst, p_.out, elements, dims, strides))
      return false;
    return make_primitive([&](const void* attr, Handle* desc) {
      if (d_.third)
        return d_.softmax_create3(desc, d_.engine, kForwardInference, kSoftmaxAccurate, x.desc.get(), y.desc.get(), 1,
                                  attr);
      auto op = std::make_unique<Block>();
      const int code =
          d_.softmax_init2(op->bytes.data(), kForwardInference, kSoftmaxAccurate, x.desc.get(), y.desc.get(), 1);
      return code ? code : d_.primitive_desc_create2(desc, op->bytes.data(), attr, d_.engine, nullptr);
    });
  }

  template <class F>
  bool make_primitive(F&& describe_operation) {
    Handle attr = nullptr, post = nullptr, desc = nullptr;
    bool good = d_.attr_create(&attr) == 0 && d_.post_ops_create(&post) == 0;
    const ActivationRow& activation = row_of(p_.activation);
    if (good && p_.activation != Activation::none && p_.kind == VendorKind::matmul) {
      const float alpha = p_.activation == Activation::silu ? 1.0f : 0.0f;
      good = (d_.third ? d_.append_eltwise3(post, activation.dnnl3, alpha, 0)
                       : d_.append_eltwise2(post, 1.0f, activation.dnnl2, alpha, 0)) == 0 &&
             d_.attr_set_post_ops(attr, post) == 0;
    }
    good = good && describe_operation(attr, &desc) == 0 && d_.primitive_create(&primitive_, desc) == 0;
    if (desc) d_.primitive_desc_destroy(desc);
    if (post) d_.post_ops_destroy(post);
    if (attr) d_.attr_destroy(attr);
    return good;
  }

  VendorProblem p_;
  const Dnnl& d_;
  int rank_ = 2;
  std::array<Operand, 4> operands_;
  Handle primitive_ = nullptr;
  std::vector<Set> sets_;
};

}  // namespace

Result<std::unique_ptr<Runnable>> dnnl_reference(Executor&, const VendorProblem& problem) {
  if (!dnnl().ready) return fail(not_served("oneDNN", "no libdnnl.so.3 or .2"));
  auto primitive = std::make_unique<DnnlPrimitive>(problem);
  WARPLOOM_CHECK(primitive->prepare());
  return primitive;
}

}  // namespace warploom::runtime
