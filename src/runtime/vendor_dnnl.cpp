// oneDNN, opened at run time: the C API of its second version, the one that Debian 12 has (libdnnl.so.2).
// Source: oneDNN developer guide, "C API", and the numbers of dnnl_types.h.

#include "runtime/bound.h"
#include "runtime/library.h"
#include "runtime/type_codes.h"
#include "runtime/vendor.h"
namespace warploom::runtime {
namespace {
using Handle = void*;
using Object = std::shared_ptr<void>;
using Dims = std::array<std::int64_t, 12>;  // as many as oneDNN reads

constexpr int kCpu = 1, kForwardInference = 96, kSoftmaxAccurate = 0x30000;
constexpr unsigned kInOrder = 1;
constexpr int kArgSrc = 1, kArgDst = 17, kArgWeights = 33, kArgBias = 41;

struct Version {
  int major, minor, patch;
};
struct ExecArg {
  int arg;
  Handle memory;
};

struct Dnnl {
  const Library library{"libdnnl.so.2"};
  const Version* (*version)() = library["dnnl_version"];
  int (*engine_create)(Handle*, int kind, std::size_t index) = library["dnnl_engine_create"];
  int (*stream_create)(Handle*, Handle engine, unsigned flags) = library["dnnl_stream_create"];
  int (*stream_wait)(Handle) = library["dnnl_stream_wait"];
  int (*desc_init)(void*, int rank, const std::int64_t*, int type,
                   const std::int64_t*) = library["dnnl_memory_desc_init_by_strides"];
  int (*memory_create)(Handle*, const void* desc, Handle engine, void* data) = library["dnnl_memory_create"];
  int (*memory_destroy)(Handle) = library["dnnl_memory_destroy"];
  int (*attr_create)(Handle*) = library["dnnl_primitive_attr_create"];
  int (*attr_destroy)(Handle) = library["dnnl_primitive_attr_destroy"];
  int (*attr_set_post_ops)(Handle, const void*) = library["dnnl_primitive_attr_set_post_ops"];
  int (*post_ops_create)(Handle*) = library["dnnl_post_ops_create"];
  int (*post_ops_destroy)(Handle) = library["dnnl_post_ops_destroy"];
  int (*append_eltwise)(Handle, float scale, int algorithm, float alpha, float beta) = library["dnnl_post_ops_append_eltwise"];
  int (*matmul_init)(void*, const void* src, const void* weights, const void* bias,
                     const void* dst) = library["dnnl_matmul_desc_init"];
  int (*softmax_init)(void*, int kind, int algorithm, const void* src, const void* dst,
                      int axis) = library["dnnl_softmax_v2_forward_desc_init"];
  int (*primitive_desc_create)(Handle*, const void* op, const void* attr, Handle engine,
                               const void* hint) = library["dnnl_primitive_desc_create"];
  int (*primitive_desc_destroy)(Handle) = library["dnnl_primitive_desc_destroy"];
  int (*primitive_create)(Handle*, const void* desc) = library["dnnl_primitive_create"];
  int (*primitive_destroy)(Handle) = library["dnnl_primitive_destroy"];
  int (*execute)(const void*, Handle stream, int count, const ExecArg*) = library["dnnl_primitive_execute"];
  Handle engine = nullptr, stream = nullptr;
  bool ready = library.complete() && engine_create(&engine, kCpu, 0) == 0 && stream_create(&stream, engine, kInOrder) == 0;
};

const Dnnl& dnnl() {
  static const Dnnl instance;
  return instance;
}

// Descriptors are structures that the caller holds: here a block of bytes large enough for any (matmul's is 2.7 kB in 2.6).
struct alignas(64) Block {
  std::array<std::byte, 16384> bytes{};
};

// A tensor of the primitive: its buffer, its argument number, its layout.
struct Operand {
  BufferSpec buffer;
  int arg = 0;
  Block desc;
};

class DnnlPrimitive final : public Runnable {
 public:
  explicit DnnlPrimitive(const VendorProblem& problem) : p_(problem), d_(dnnl()) {}

  Status prepare() {
    for (const Dtype dtype : {p_.in, p_.out, p_.bias_dtype})
      if (!codes_of(dtype).dnnl) return not_served(name(), "an element type");
    Block op;
    const Object attributes = owned(d_.attr_create, d_.attr_destroy), after = owned(d_.post_ops_create, d_.post_ops_destroy);
    if (!(p_.kind == VendorKind::matmul ? describe_matmul(op) : describe_softmax(op)) || !attributes || !after ||
        !append_activation(after) || d_.attr_set_post_ops(attributes.get(), after.get()) != 0)
      return not_served(name(), "the operation with these types or shapes");
    const auto desc = owned(d_.primitive_desc_create, d_.primitive_desc_destroy, &op, attributes.get(), d_.engine, nullptr);
    if (desc) primitive_ = owned(d_.primitive_create, d_.primitive_destroy, desc.get());
    return primitive_ ? ok() : not_served(name(), "the operation with these types, shapes or post-operations");
  }

  std::string name() const override {
    const Version* version = d_.version();
    return fmt::format("oneDNN {}.{}.{}", version->major, version->minor, version->patch);
  }

  Result<Call> bind(const Bindings& buffers) override {
    std::vector<std::pair<Buffer, Object>> kept;
    std::vector<ExecArg> arguments;
    for (const Operand& operand : operands_) {
      WARPLOOM_TRY(const Buffer buffer, named_buffer(buffers, operand.buffer));
      const Object memory = owned(d_.memory_create, d_.memory_destroy, &operand.desc, d_.engine, buffer.address());
      if (!memory) return not_served(name(), "a memory object it refused");
      kept.emplace_back(buffer, memory);
      arguments.push_back({operand.arg, memory.get()});
    }
    return [this, kept, arguments]() -> Status {
      const int code = d_.execute(primitive_.get(), d_.stream, static_cast<int>(arguments.size()), arguments.data());
      if (code == 0 && d_.stream_wait(d_.stream) == 0) return ok();
      return fail(
          {ErrorCode::kInternal, "dnnl_primitive_execute failed", name(), "status 0", fmt::format("status {}", code), ""});
    };
  }

 private:
  // One more operand, of shape [batch, r, c]: a batch of 1 is repeated, as are a bias's other sizes of 1.
  bool describe(const char* buffer, int arg, Dtype dtype, std::int64_t batch, std::int64_t r, std::int64_t c,
                bool transposed = false) {
    Operand& made = operands_.emplace_back(Operand{{buffer, dtype, {batch, r, c}}, arg, {}});
    const Dims dims = {batch, r, c}, strides = {r * c, transposed ? 1 : c, transposed ? r : 1};
    const int first = p_.batch == 1;
    return d_.desc_init(&made.desc, 3 - first, dims.data() + first, codes_of(dtype).dnnl, strides.data() + first) == 0;
  }

  bool describe_matmul(Block& op) {
    const bool bias = p_.bias != BiasKind::none, full = p_.bias == BiasKind::full;
    return describe("A", kArgSrc, p_.in, p_.batched_a ? p_.batch : 1, p_.m, p_.k, p_.transpose_a) &&
           describe("B", kArgWeights, p_.in, p_.batched_b ? p_.batch : 1, p_.k, p_.n, p_.transpose_b) &&
           describe("C", kArgDst, p_.out, p_.batch, p_.m, p_.n) &&
           (!bias || describe("bias", kArgBias, p_.bias_dtype, full ? p_.batch : 1, p_.bias == BiasKind::per_column ? 1 : p_.m,
                              p_.bias == BiasKind::per_row ? 1 : p_.n)) &&
           d_.matmul_init(&op, &operands_[0].desc, &operands_[1].desc, bias ? &operands_[3].desc : nullptr, &operands_[2].desc) ==
               0;
  }

  bool describe_softmax(Block& op) {
    return describe("X", kArgSrc, p_.in, 1, p_.rows, p_.cols) && describe("Y", kArgDst, p_.out, 1, p_.rows, p_.cols) &&
           d_.softmax_init(&op, kForwardInference, kSoftmaxAccurate, &operands_[0].desc, &operands_[1].desc, 1) == 0;
  }

  bool append_activation(const Object& after) {
    if (p_.activation == Activation::none || p_.kind == VendorKind::softmax) return true;
    const float alpha = p_.activation == Activation::silu ? 1.0f : 0.0f;
    return d_.append_eltwise(after.get(), 1.0f, row_of(p_.activation).dnnl, alpha, 0) == 0;
  }

  VendorProblem p_;
  const Dnnl& d_;
  std::vector<Operand> operands_;
  Object primitive_;
};
}  // namespace
Result<std::unique_ptr<Runnable>> dnnl_reference(const VendorProblem& problem) {
  if (!dnnl().ready) return not_served("oneDNN", "no libdnnl.so.2");
  auto primitive = std::make_unique<DnnlPrimitive>(problem);
  WARPLOOM_CHECK(primitive->prepare());
  return primitive;
}
}  // namespace warploom::runtime
